"""Small curations made for tests: dialogues, a gathered stage, rules that can be told what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from h2htalk.curation.outcomes import Kept, Outcomes, PartRule, Record, Rejected, each
from h2htalk.curation.pipeline import Opener, Stage, claim, finish
from h2htalk.curation.stage_folder import StageFolder, part_name
from h2htalk.curation.workspace import Workspace

# What the raw files call a person.
PERSONS = {"made-p0001": "Emily Carter"}


def dialogue(number: int, *texts: str, person: str | None = None, source: str = "made") -> dict[str, object]:
    """A dialogue of alternating turns, the user first."""
    said = texts or (f"I slept badly, night {number}.", "That sounds hard. What kept you awake?")
    roles = ("user", "companion")
    return {
        "id": f"{source}-{number:06}",
        "language": "en",
        "messages": [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)],
        "provenance": {"source": source, "row": number} | ({"person": person} if person else {}),
        "licence": "CC0-1.0",
        "metadata": {},
    }


def gathered(path: Path, dialogues: Sequence[Record], *, part: int = 3) -> Workspace:
    """A workspace whose first stage holds these dialogues."""
    workspace = Workspace(path)
    workspace.open_key()
    folder = workspace.stage("gather")
    claim(folder, Stage("gather", 1, {}, Opener(keeping)), "")
    for number, start in enumerate(range(0, len(dialogues), part)):
        chosen = dialogues[start : start + part]
        outcomes = [[Kept(d, audit={"raw": _index(d, at)})] for at, d in enumerate(chosen, start + 1)]
        folder.write(part_name(number), outcomes, "gather")
    finish(folder)
    return workspace


def _index(record: Record, line: int) -> dict[str, object]:
    person = record["provenance"].get("person")
    named = {"person": PERSONS[person], "known_as": person} if person else {}
    return {"file": "raw.jsonl", "line": line} | named


def keeping() -> PartRule:
    """Everything goes on."""
    return each(lambda record: [Kept(record)])


def dropping(word: str) -> PartRule:
    """Dialogues that say a word are rejected with their text; `review` is marked where they are long."""

    def rule(record: Record) -> Outcomes:
        texts = [message["content"] for message in record["messages"]]
        if any(word in text for text in texts):
            return [Rejected(record["id"], f"says {word}", {"word": word}, record)]
        return [Kept(record, tags=("review",) if len(texts) > 2 else ())]

    return each(rule)


def stage(name: str, opener: Opener, version: int = 1, **settings: object) -> Stage:
    return Stage(name, version, settings, opener)


def all_bytes(folder: StageFolder) -> dict[str, bytes]:
    """Every file of kept, rejected and audit, by its name."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for kind in ("kept", "rejected", "audit")
        for path in sorted((folder.path / kind).glob("*.jsonl"))
    }


def all_files(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, but for locks, by its name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }

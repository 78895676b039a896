"""Small curations for tests: dialogues, workspaces with a finished stage, rules, and runs of one stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.curation.run import RuleFactory, StageRun, claim, run_stage
from h2htalk.curation.stage_folder import (
    Kept,
    PartRule,
    Record,
    RecordCounts,
    Rejected,
    StageFolder,
    part_name,
)
from h2htalk.curation.stages import CurateSpec, find_stage
from h2htalk.curation.workspace import Workspace
from support.doubles.harmless_answers import HARMLESS

# Words of which the lines of many different dialogues are drawn.
THINGS = (
    *(
        "harbour",
        "violin",
        "glacier",
        "teapot",
        "meadow",
        "lantern",
        "orchard",
        "marble",
        "ferry",
        "saddle",
        "kiln",
    ),
    *(
        "tram",
        "quarry",
        "willow",
        "chimney",
        "cellar",
        "bridge",
        "attic",
        "garden",
        "market",
        "stove",
        "piano",
    ),
    *(
        "river",
        "candle",
        "pepper",
        "ladder",
        "basket",
        "mirror",
        "window",
        "tunnel",
        "blanket",
        "kettle",
    ),
)
# Person -> name in the raw files.
PERSONS = {"made-p0001": "Emily Carter", "made-p0002": "Ruth Vane"}
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")


MODELS = (
    '[compose]\nmodel = "scripted:composer.jsonl"\n[review]\nmodel = "scripted:reviewer.jsonl"\n'
)


def source(name: str, path: object, form: str = "messages", more: str = "") -> str:
    given = {"name": name, "path": path, "format": form, "language": "en", "licence": "CC0-1.0"}
    return "\n".join(
        ["[[gather.sources]]", *(f'{key} = "{value}"' for key, value in given.items()), more, ""]
    )


def accepting() -> str:
    verdict = {name: {"evidence": "Seen.", "score": 5} for name in CRITERIA}
    decided = {"fitting_subtask": "dialogue_base", "revision": "", "verdict": "accept"}
    return json.dumps({**verdict, **decided, "in_scenario": HARMLESS, "in_reference": HARMLESS})


def write_models(folder: Path) -> None:
    """Write the scripts of `MODELS`: a composer that proposes nothing (what is extracted stays), a kind reviewer."""
    proposals = json.dumps({"evidence": "Seen.", "proposals": []})
    for name, text in {"composer": proposals, "reviewer": accepting()}.items():
        (folder / f"{name}.jsonl").write_text(json.dumps({"id": "*", "text": text}) + "\n")


def dialogue(
    number: int, *texts: str, person: str | None = None, source: str = "made"
) -> dict[str, object]:
    """A dialogue of alternating turns, the user first."""
    contents = texts or (
        f"I slept badly, night {number}.",
        "That sounds hard. What kept you awake?",
    )
    roles = ("user", "companion")
    return {
        "id": f"{source}-{number:06}",
        "language": "en",
        "messages": [{"role": roles[at % 2], "content": text} for at, text in enumerate(contents)],
        "provenance": {"source": source, "row": number} | ({"person": person} if person else {}),
        "licence": "CC0-1.0",
        "metadata": {},
    }


def finished(path: Path, name: str, records: Sequence[Record | Kept], part: int = 3) -> Workspace:
    """A workspace in which one stage is finished and has kept these records."""
    workspace = Workspace(path)
    workspace.open_key()
    folder = workspace.stage(name)
    claim(folder, StageRun(name, 1, {}), "")
    for number, start in enumerate(range(0, len(records), part)):
        chosen = records[start : start + part]
        kept = [[record if isinstance(record, Kept) else Kept(record)] for record in chosen]
        folder.write(part_name(number), kept, name)
    folder.finish()
    return workspace


def gathered(path: Path, dialogues: Sequence[Record], *, part: int = 3) -> Workspace:
    records = [Kept(d, audit={"raw": _index(d, line)}) for line, d in enumerate(dialogues, 1)]
    return finished(path, "gather", records, part)


def _index(record: Record, line: int) -> dict[str, object]:
    person = record["provenance"].get("person")
    named = {"person": PERSONS[person], "known_as": person} if person else {}
    return {"file": "raw.jsonl", "line": line} | named


def run_one(name: str, workspace: Workspace, *sections: object, **general: Any) -> RecordCounts:
    """Run one stage with these sections of a specification, and its general settings."""
    spec = CurateSpec(str(workspace.path), sections=sections, **{"processes": 1, **general})
    stage = find_stage(name).make(spec, workspace, workspace.open_key())
    return run_stage(stage, workspace, processes=spec.processes)


def keeping() -> PartRule:
    return lambda records, part: [[Kept(record)] for record in records]


def dropping(word: str) -> PartRule:
    """A rule that rejects dialogues with a word, and tags long ones as `review`."""

    def rule(record: Record) -> list[Kept | Rejected]:
        texts = [message["content"] for message in record["messages"]]
        if any(word in text for text in texts):
            return [Rejected(record["id"], f"says {word}", {"word": word}, record)]
        return [Kept(record, tags=("review",) if len(texts) > 2 else ())]

    return lambda records, part: list(map(rule, records))


def stage(name: str, open_rule: RuleFactory, version: int = 1, **settings: object) -> StageRun:
    return StageRun(name, version, settings, open_rule)


def all_bytes(folder: StageFolder) -> dict[str, bytes]:
    """Every file of kept, rejected and audit, by its name."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for kind in ("kept", "rejected", "audit")
        for path in sorted((folder.path / kind).glob("*.jsonl"))
    }


def all_files(folder: Path) -> dict[str, bytes]:
    """Every file in a folder except locks, by its name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }

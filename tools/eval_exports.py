"""How exports of chats that hands wrote are read: as a careful person would, with a reason, or otherwise.

    python tools/eval_exports.py [FOLDER]

FOLDER (`tests/curation/gather/hands`) holds files by hand and kind, each with what its author says is in it
(`NAME.truth.json`, see `tools/exports/brief_exports.md`). Each file is read as `h2htalk curate look` proposes, with the
name of the companion from the truth: by the user's side alone where a file has none. A file is *read* where every
message of its truth is there, with its speaker and its words, in the order of the truth, and nothing else.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.curation.gather import look
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.stages import Source
from h2htalk.errors import H2HTalkError

ROOT = Path(__file__).resolve().parents[1]
Said = list[tuple[str, str]]


def read(file: Path, companion: str) -> tuple[Said, list[str]]:
    """The messages of a file, and why anything was refused."""
    kind = look.find_kind(file)
    if kind is None:
        return [], ["no format reads it: " + " ".join(look.advice(file))]
    source = Source(
        name="made",
        path=str(file.absolute()),
        language="en",
        licence="CC0-1.0",
        companion=companion,
        **kind.settings,
    )
    try:
        _, _, items = look.readable(source)
    except H2HTalkError as error:
        return [], [str(error)]
    said: Said = []
    refused: list[str] = []
    for item in items:
        if isinstance(item.content, RawDialogue):
            said += [(role, plain(text)) for role, text in item.content.messages]
        elif isinstance(item.content, RefusedItem):
            refused.append(str(item.content))
    return said, refused


def plain(text: str) -> str:
    """A text without what white space and marks of direction do."""
    return " ".join(text.replace("\u200e", "").replace("\u200f", "").split())


def main(words: list[str]) -> None:
    folder = Path(words[0]) if words else ROOT / "tests" / "curation" / "gather" / "hands"
    counts: Counter[tuple[str, str]] = Counter()
    for truth_file in sorted(folder.rglob("*.truth.json")):
        truth: dict[str, Any] = json.loads(truth_file.read_text(encoding="utf-8"))
        stem = truth_file.name.removesuffix(".truth.json")
        file = next(
            path for path in truth_file.parent.iterdir() if path.stem == stem and path != truth_file
        )
        kind = truth_file.parent.name
        said, refused = read(file, truth["companion"])
        wanted = [(role, plain(text)) for role, text in chain.from_iterable(truth["conversations"])]
        if truth["refuse"]:
            outcome = "refused, rightly" if not said else "read, wrongly"
        elif said == wanted:
            outcome = "read"
        elif not said:
            outcome = "refused"
        else:
            outcome = "read otherwise"
        counts[kind, outcome] += 1
        print(f"{file.relative_to(folder)}: {outcome}")
        for reason in refused[:3]:
            print(f"    {reason[:300]}")
        if outcome == "read otherwise":
            before = [f"{role}: {text}" for role, text in wanted]
            after = [f"{role}: {text}" for role, text in said]
            changes = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
            for line in changes[:8]:
                print(f"    {line[:160]}")
            if len(changes) > 8:
                print(f"    and {len(changes) - 8} more")
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind}: {outcome}: {count}")


if __name__ == "__main__":
    main(sys.argv[1:])

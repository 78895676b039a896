"""Number the dialogues of ESConv's development set, and find the private first names that two readers marked in them.

    H2HTALK_DATA=... python tools/private/esconv_dialogues.py    # the dialogues, as readers get them
    H2HTALK_DATA=... python tools/private/esconv_dialogues.py --places A.jsonl B.jsonl

The text is CC BY-NC 4.0 and is no part of this package: the places of names are, with the first eight digits of the
SHA-256 of each name. A row of the raw file holds the messages of a dialogue up to some turn; rows of one dialogue agree
on the messages that they share.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RAW = "raw/esconv_dev_en.tsv"
_TURN = re.compile(
    r"\s*\S+ (\d) (\d+) (.*)"
)  # whether its turn is loss-bearing, the role, the number, the text
_STRATEGY = re.compile(r"^\[[^\]]*\] ")


class Message(NamedTuple):
    """A message of a dialogue; `role` is `seeker` or `supporter`."""

    role: str
    text: str


Numbered = dict[int, Message]


def read_dialogues(data: Path) -> list[Numbered]:
    """The dialogues in the order of the file, each its messages by their number; dialogue 1 is the first."""
    dialogues: list[Numbered] = []
    for row in (data / RAW).read_text(encoding="utf-8").split("\n"):
        turns: Numbered = {}
        for part in row.split(" EOS "):
            if turn := _TURN.match(part):
                role = "seeker" if turn[1] == "0" else "supporter"
                turns[int(turn[2])] = Message(role=role, text=_STRATEGY.sub("", turn[3]).strip())
        if not turns:
            continue
        current = dialogues[-1] if dialogues else {}
        same = bool(current) and max(turns) > max(current)
        if not same or any(current.get(number, turn) != turn for number, turn in turns.items()):
            dialogues.append({})
        dialogues[-1].update(turns)
    return dialogues


def agreed_places(dialogues: list[Numbered], readers: list[Path]) -> Iterator[dict[str, object]]:
    """The places that all readers marked, each with its characters in the message."""
    marked = []
    for path in readers:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        marked.append(
            Counter(
                (r["dialogue"], r["message"], r["name"], r["of"]) for r in rows if "dialogue" in r
            )
        )
    agreed = marked[0]
    for other in marked[1:]:
        agreed &= other
    for (dialogue, message, name, of), count in sorted(agreed.items()):
        text = dialogues[dialogue - 1][message].text
        places = [
            found.span() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        ] or [found.span() for found in re.finditer(re.escape(name), text)]
        for start, end in places[:count]:
            digest = hashlib.sha256(name.lower().encode()).hexdigest()[:8]
            place = {
                "dialogue": dialogue,
                "message": message,
                "start": start,
                "end": end,
                "name": digest,
                "of": of,
            }
            yield place


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--places", type=Path, nargs="+", help="what readers marked: print what they agree on"
    )
    options = parser.parse_args()
    dialogues = read_dialogues(Path(os.environ["H2HTALK_DATA"]))
    if options.places:
        for place in agreed_places(dialogues, options.places):
            print(json.dumps(place))
        return
    for number, dialogue in enumerate(dialogues, 1):
        print(f"=== dialogue {number}")
        for place, (role, text) in sorted(dialogue.items()):
            print(f"{place} {role}: {text}")


if __name__ == "__main__":
    main()

"""Measure the names of private people that are found in support chat, and the public talk that is changed.

    H2HTALK_DATA=... python tools/eval_names.py [--talk personal public] [--show] [--without-topical]

Support chat: the places of `tests/curation/golden/esconv_names.jsonl`, in whole dialogues of ESConv. Public talk:
dialogues of Topical-Chat (valid) in which anything is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval_pii import share
from private.esconv_dialogues import Numbered, read_dialogues
from safety.corpora import read_rows

from h2htalk.detect.personal.engine.analyzer import find_in_dialogue
from h2htalk.detect.personal.spans import Span

PLACES = Path(__file__).parents[1] / "tests/curation/golden/esconv_names.jsonl"

Place = dict[str, Any]  # a line of `PLACES`


def places_by_dialogue() -> dict[int, list[Place]]:
    """The places of names, by the number of their dialogue."""
    places: dict[int, list[Place]] = defaultdict(list)
    for line in PLACES.read_text(encoding="utf-8").splitlines():
        place = json.loads(line)
        places[place["dialogue"]].append(place)
    return places


def print_found_names(dialogues: list[Numbered], talk: str, show: bool) -> None:
    """Print the share of places that are found, of seekers and of supporters, and the dialogues that are changed."""
    places = places_by_dialogue()
    hits_of_speakers: dict[str, list[bool]] = {"seeker": [], "supporter": []}
    hits_of_people: dict[tuple[int, str], list[bool]] = defaultdict(list)
    others = 0
    for number, dialogue in enumerate(dialogues, 1):
        messages = sorted(dialogue)
        texts = [dialogue[message].text for message in messages]
        spans = dict(zip(messages, find_in_dialogue(texts, "en", talk=talk).spans, strict=True))
        for place in places[number]:
            hit = is_found(place, spans[place["message"]])
            hits_of_speakers[place["of"]].append(hit)
            hits_of_people[number, place["name"]].append(hit)
            if show and not hit:
                text = dialogue[place["message"]].text
                begin = max(0, place["start"] - 60)
                print(f"missed {number}/{place['message']}: ...{text[begin : place['end'] + 40]}")
        for message, spans_of_message in spans.items():
            starts = [place["start"] for place in places[number] if place["message"] == message]
            for span in spans_of_message:
                if not is_other_person(span, starts):
                    continue
                others += 1
                if show:
                    print(f"other {number}/{message}: {marked(span, dialogue[message].text)}")
    for speaker, hits in hits_of_speakers.items():
        print(f"ESConv {talk:8} names of a {speaker:9} {share(sum(hits), len(hits))}")
    whole = [all(hits) for hits in hits_of_people.values()]
    print(
        f"ESConv {talk:8} people found everywhere {share(sum(whole), len(whole))}; other PERSON spans {others}"
    )


def is_found(place: Place, spans: Sequence[Span]) -> bool:
    """Whether a span covers a name."""
    return any(span.start <= place["start"] and place["end"] <= span.end for span in spans)


def is_other_person(span: Span, starts: Sequence[int]) -> bool:
    """Whether a span marks a person where no name of the places begins."""
    return span.type == "PERSON" and not any(span.start <= start < span.end for start in starts)


def marked(span: Span, text: str) -> str:
    """A span in brackets, with the text around it."""
    before = text[max(0, span.start - 40) : span.start]
    return f"{before}[{text[span.start : span.end]}]{text[span.end : span.end + 30]}"


def print_changed_topical(data: Path, talk: str, show: bool) -> None:
    """Print the share of Topical-Chat's dialogues in which something is replaced."""
    rows = list(read_rows(data / "raw/topical_chat_valid_en.jsonl"))
    changed = 0
    for row in rows:
        texts = [turn["content"] for turn in row["messages"]]
        names: list[str] = []
        for text, spans in zip(texts, find_in_dialogue(texts, "en", talk=talk).spans, strict=True):
            names += [text[span.start : span.end] for span in spans]
        if names:
            changed += 1
        if show and names:
            print(row["id"], names)
    print(f"Topical-Chat {talk:8} dialogues changed {share(changed, len(rows))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--talk", nargs="+", default=["personal", "public"])
    parser.add_argument("--show", action="store_true", help="print each miss, and each other span")
    parser.add_argument("--without-topical", action="store_true")
    options = parser.parse_args()
    data = Path(os.environ["H2HTALK_DATA"])
    for talk in options.talk:
        print_found_names(read_dialogues(data), talk, options.show)
        if not options.without_topical:
            print_changed_topical(data, talk, options.show)


if __name__ == "__main__":
    main()

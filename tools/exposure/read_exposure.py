"""Let people, or fresh readers, answer the question of `h2htalk release risk` as a model would, and score their quotes.

    python tools/exposure/read_exposure.py draw FOLDER DIALOGUES.jsonl... [--parts 1]
    python tools/exposure/read_exposure.py score FOLDER DIALOGUES.jsonl...

DIALOGUES: one JSON object a line (`tools/exposure/brief_dialogues.md`),
`{"language": "en", "exposed": true, "messages": [{"role": "user", "content": "..."}, ...], "details": [...]}`.

`draw` writes FOLDER/rules-en.txt and FOLDER/en-1.jsonl (and zh) for `tools/exposure/hand_as_reader.md`: the requests of
`h2htalk.curation.reading.exposure`, in an order that says nothing. `score` reads FOLDER/out/*.jsonl through the
product's own parser, and prints by language of how many dialogues with three or more details, and of how many others, a
reader quoted three or more; how many of the authors' details it quoted; the quotes that stand nowhere; and each
dialogue that it got wrong. This checks prompt, windows and parser; it is no figure of any model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from reader_files import rate, read_replies, write_requests

from h2htalk.chat.protocol import Reply, Request
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.exposure import ExposureQuestion, ExposureReading, folded_quote
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.exposures import LEAST_DETAILS
from h2htalk.data.scenario import Dialogue, Turn

SECRET = b"hand as reader"
MODEL = "openai:gpt-4o"  # for the form of requests; no call is made


@dataclass(frozen=True)
class LabelledDialogue:
    """A dialogue with its author's label."""

    exposed: bool
    details: tuple[str, ...]
    dialogue: Dialogue


def labelled_dialogues(paths: Sequence[Path]) -> dict[str, LabelledDialogue]:
    """The dialogues of files by an id that tells nothing, in the order of their ids."""
    dialogues: dict[str, LabelledDialogue] = {}
    for path in paths:
        for _, line in read_jsonl(path):
            turns = tuple(Turn(message["role"], message["content"]) for message in line["messages"])
            spoken = json.dumps(line["messages"], ensure_ascii=False)
            hidden = hashlib.sha256(spoken.encode()).hexdigest()[:8]
            dialogues[hidden] = LabelledDialogue(
                exposed=line["exposed"],
                details=tuple(line["details"]),
                dialogue=Dialogue(hidden, line["language"], turns),
            )
    return dict(sorted(dialogues.items()))


def question() -> ExposureQuestion:
    """The product's own question."""
    return ExposureQuestion(model=MODEL, prompts=Prompts.load(), secret=SECRET)


def draw(folder: Path, paths: Sequence[Path], parts: int) -> None:
    """Write what readers get."""
    asking = question()
    labelled = labelled_dialogues(paths)
    for language in LANGUAGES:
        requests: list[Request] = []
        for one in labelled.values():
            if one.dialogue.language == language:
                requests += asking.requests(one.dialogue)
        if requests:
            write_requests(folder, language, requests, parts)


def is_quoted(detail: str, reading: ExposureReading) -> bool:
    """Whether a reader quoted a detail of the author, or words of it, or words that hold it."""
    wanted = folded_quote(detail)
    quotes = [folded_quote(quoted.quote) for quoted in reading.details]
    return any(quote in wanted or wanted in quote for quote in quotes)


def score(folder: Path, paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of the result."""
    labelled = labelled_dialogues(paths)
    replies = read_replies(folder)
    for language in LANGUAGES:
        of_language = [one for one in labelled.values() if one.dialogue.language == language]
        if of_language:
            yield from score_language(language, of_language, replies)


def score_language(
    language: Language, labelled: Sequence[LabelledDialogue], replies: dict[str, Reply]
) -> Iterator[str]:
    """Yield the lines of a language: shares, then what was missed and what was named in vain."""
    asking = question()
    named: dict[bool, list[bool]] = {True: [], False: []}
    quoted: list[bool] = []
    lines: list[str] = []
    misquoted = 0
    unread = 0
    for one in labelled:
        reading = asking.read(one.dialogue, replies)
        if reading.unread:
            unread += 1
            lines.append(f"  unread: {one.dialogue.id}: {', '.join(reading.reasons)}")
            continue
        is_named = len(reading.details) >= LEAST_DETAILS
        named[one.exposed].append(is_named)
        misquoted += reading.misquoted
        if one.exposed:
            quoted += [is_quoted(detail, reading) for detail in one.details]
        if is_named != one.exposed:
            what = "missed" if one.exposed else "named in vain"
            quotes = "; ".join(f"{detail.kind}: {detail.quote}" for detail in reading.details)
            lines.append(
                f"  {what}: {one.dialogue.id}: its author: {'; '.join(one.details)} | quoted: {quotes}"
            )
    yield f"{language}: {unread} dialogues unread; {misquoted} quotes stand in no message of the user"
    yield f"  with three or more details: named {rate(named[True])}"
    yield f"  the others: named {rate(named[False])}"
    yield f"  the authors' details of the first: quoted {rate(quoted)}"
    yield from lines


def main(words: Sequence[str]) -> int:
    """Draw or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("draw", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "dialogues", type=Path, nargs="+", help="files of dialogues, one JSON object a line"
    )
    parser.add_argument("--parts", type=int, default=1, help="files a language, one a reader")
    options = parser.parse_args(words)
    if options.what == "draw":
        draw(options.folder, options.dialogues, options.parts)
        return 0
    print(*score(options.folder, options.dialogues), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

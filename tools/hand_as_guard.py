"""Let people, or fresh readers, answer the plain question as a guard would, and score what they found.

    python tools/hand_as_guard.py draw FOLDER [--parts 4]
    H2HTALK_DATA=... python tools/hand_as_guard.py draw-corpus FOLDER [--parts 1] [--number 60]
    python tools/hand_as_guard.py draw-check FOLDER [--parts 1]
    python tools/hand_as_guard.py score FOLDER

`draw` writes FOLDER/rules-en.txt and FOLDER/en-1.jsonl, en-2.jsonl and so on (and zh) for
`tools/reading/hand_as_guard.md`: the requests of `h2htalk.curation.reading.question` about the dialogues of
`tests/curation/golden/worries_*.jsonl`, in an order that tells nothing. `score` reads FOLDER/out/*.jsonl through the
product's own parser, and prints how much was found, every miss with its author's words, and every false alarm.
`draw-corpus` takes support dialogues of `tools/eval_safety.py --corpus` in place of the sets: so many of SMILE and of
ESConv; `score-corpus` prints of how many a reader found something that people would have to look at, and what.
`draw-check` takes the bundled check set's dialogues about explicit content and personal data, and as many again of its
others in an order of their own; `score-check` prints what was found and missed, by label. This
checks prompt, windows and parser; it is no figure of any model.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_safety import draw_corpora
from reader_files import rate, read_replies, write_requests

from h2htalk.chat.protocol import Request
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.findings import read_findings
from h2htalk.curation.reading.question import DialogueReading, MessageFinding, PlainQuestion
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.check_set import CheckedDialogue, load_check_set
from h2htalk.data.scenario import Dialogue, Turn

ROOT = Path(__file__).resolve().parents[1]
SETS = ("harm", "crisis", "minor")
CHECK_LABELS = ("explicit", "plain", "personal", "public")
SECRET = b"hand as guard"
MODEL = "openai:gpt-4o"  # for the form of requests; no call is made


@dataclass(frozen=True)
class Worry:
    """A dialogue with its author's label."""

    set: str
    label: str
    turn: int
    why: str
    hand: str
    dialogue: Dialogue


def worries(language: Language) -> dict[str, Worry]:
    """The dialogues of a language by an id that tells nothing, in the order of their ids."""
    found: dict[str, Worry] = {}
    for name in SETS:
        for _, line in read_jsonl(
            ROOT / "tests" / "curation" / "golden" / f"worries_{name}_{language}.jsonl"
        ):
            hidden = hashlib.sha256(f"{name} {line['id']} {language}".encode()).hexdigest()[:8]
            turns = tuple(Turn(message["role"], message["content"]) for message in line["messages"])
            found[hidden] = Worry(
                set=name,
                label=line["label"],
                turn=line["turn"],
                why=line["why"],
                hand=line["hand"],
                dialogue=Dialogue(hidden, language, turns),
            )
    return dict(sorted(found.items()))


def question() -> PlainQuestion:
    """The product's own question."""
    return PlainQuestion(model=MODEL, seed=1, prompts=Prompts.load(), secret=SECRET)


def corpus(language: Language, number: int) -> list[Dialogue]:
    """Support dialogues of a language, with ids that tell nothing, in the order of their ids."""
    hidden: list[Dialogue] = []
    for name, dialogues in draw_corpora(Path(os.environ["H2HTALK_DATA"]), number):
        for one in dialogues:
            if one.language == language:
                identity = hashlib.sha256(f"{name} {one.id}".encode()).hexdigest()[:8]
                hidden.append(Dialogue(identity, language, one.messages))
    return sorted(hidden, key=lambda one: one.id)


def check_dialogues(language: Language) -> dict[str, CheckedDialogue]:
    """Dialogues of the check set by ids that tell nothing: all of `CHECK_LABELS`, and as many of the others."""
    hidden: dict[str, CheckedDialogue] = {}
    others: dict[str, CheckedDialogue] = {}
    for checked in load_check_set(language):
        identity = hashlib.sha256(f"check {checked.id} {language}".encode()).hexdigest()[:8]
        (hidden if checked.label in CHECK_LABELS else others)[identity] = checked
    for identity in sorted(others)[: len(hidden)]:
        hidden[identity] = others[identity]
    return dict(sorted(hidden.items()))


def dialogues_of_check(language: Language) -> list[Dialogue]:
    """The same, as readers get them."""
    chosen = check_dialogues(language)
    return [Dialogue(identity, language, checked.messages) for identity, checked in chosen.items()]


def score_check(folder: Path) -> Iterator[str]:
    """Yield, for each language and label, of how many dialogues a reader found what the label is about."""
    asking = question()
    replies = read_replies(folder)
    for language in LANGUAGES:
        shares = defaultdict[str, list[bool]](list)
        details: list[str] = []
        for identity, checked in check_dialogues(language).items():
            reading = asking.read(Dialogue(identity, language, checked.messages), replies)
            if not reading.whole:
                details.append(f"  unread: {identity}: {', '.join(reading.reasons)}")
                continue
            gates: set[str] = set()
            for message in reading.findings:
                gates.update(finding.gate for finding in read_findings(message, ""))
            found = checked.kind.gate in gates
            shares[checked.label].append(found)
            if found != checked.kind.to_find:
                details.append(
                    f"  {'missed' if checked.kind.to_find else 'false alarm'}: {checked.label}: {checked.why}"
                )
        for label, values in sorted(shares.items()):
            yield f"{language}: {label}: found {rate(values)}"
        yield from details


def draw(folder: Path, parts: int, dialogues_of: Callable[[Language], Iterable[Dialogue]]) -> None:
    """Write what readers get."""
    asking = question()
    for language in LANGUAGES:
        requests: list[Request] = []
        for one in dialogues_of(language):
            requests += asking.requests(one)
        write_requests(folder, language, requests, parts)


def is_found(worry: Worry, reading: DialogueReading) -> bool:
    """Whether a reading says of a dialogue what its set is about, at any message.

    A danger counts whoever's it is; whose, and when, `score` prints apart.
    """
    if worry.set == "harm":
        return any(one.harmful for one in reading.findings)
    if worry.set == "minor":
        return any(one.under_18 for one in reading.findings)
    return any(one.danger != "none" for one in reading.findings)


def is_for_people(finding: MessageFinding) -> bool:
    """Whether people look at a dialogue for what was found at a message."""
    is_in_doubt = finding.harm_in_doubt or finding.danger_in_doubt
    return finding.harmful or finding.explicit or bool(finding.personal_data) or is_in_doubt


def score_corpus(folder: Path, number: int) -> Iterator[str]:
    """Yield, for each language, how many dialogues a reader sends to people, and what for.

    People look at harm, explicit content and personal data; a danger, or a user under 18, is a tag.
    """
    asking = question()
    replies = read_replies(folder)
    for language in LANGUAGES:
        sent: list[bool] = []
        tagged: list[bool] = []
        details: list[str] = []
        unread = 0
        for dialogue in corpus(language, number):
            reading = asking.read(dialogue, replies)
            if not reading.whole:
                unread += 1
                continue
            looked_at = [one for one in reading.findings if is_for_people(one)]
            sent.append(bool(looked_at))
            tagged.append(any(one.under_18 or one.danger != "none" for one in reading.findings))
            for one in looked_at:
                doubted = one.danger_what if one.danger_in_doubt else ""
                what = one.harm or doubted or one.personal_data or "explicit"
                details.append(
                    f"  {dialogue.id}, message {one.turn + 1}, severity {one.severity}: {what}"
                )
        yield f"{language}: {unread} dialogues unread; sent to people {rate(sent)}; tagged {rate(tagged)}"
        yield from details


def score(folder: Path) -> Iterator[str]:
    """Yield the lines of the result."""
    asking = question()
    replies = read_replies(folder)
    for language in LANGUAGES:
        shares = defaultdict[tuple[str, str], list[bool]](list)
        of_hands = defaultdict[tuple[str, str, str], list[bool]](list)
        exact = defaultdict[str, list[bool]](list)
        details: list[str] = []
        unread = 0
        for worry in worries(language).values():
            reading = asking.read(worry.dialogue, replies)
            if not reading.whole:
                unread += 1
                details.append(f"  unread: {worry.dialogue.id}: {', '.join(reading.reasons)}")
                continue
            found = is_found(worry, reading)
            shares[worry.set, worry.label].append(found)
            of_hands[worry.set, worry.label, worry.hand].append(found)
            looks_alike = worry.label in ("fine", "none", "adult")
            if worry.set == "crisis" and not looks_alike:
                exact[worry.label].append(says_whose(worry, reading))
            if found == looks_alike:
                kind = "false alarm" if looks_alike else "missed"
                details.append(
                    f"  {kind}: {worry.set}, {worry.label} ({worry.hand}): {worry.why}{said(worry, reading)}"
                )
        yield f"{language}: {unread} dialogues unread"
        for (name, label), values in sorted(shares.items()):
            yield f"  {name}, {label}: found {rate(values)}"
            for hand in ("a", "b"):
                yield f"    by author {hand}: {rate(of_hands[name, label, hand])}"
        for label, values in sorted(exact.items()):
            yield f"  crisis, {label}: whose and when as its author says: {rate(values)}"
        yield from details


def says_whose(worry: Worry, reading: DialogueReading) -> bool:
    """Whether a danger is read as the user's or somebody else's, now or past, as its author labelled it."""
    dangers = {one.danger for one in reading.findings}
    wanted: dict[str, set[str]] = {
        "own": {"own_now"},
        "other": {"other_now"},
        "past": {"own_past", "other_past"},
    }
    return bool(dangers & wanted[worry.label])


def said(worry: Worry, reading: DialogueReading) -> str:
    """What a reader wrote about a false alarm."""
    words: list[Any] = [
        one.harm or one.danger_what for one in reading.findings if one.harm or one.danger_what
    ]
    return f" | read as: {'; '.join(words)}" if words else ""


def main(words: Sequence[str]) -> int:
    """Draw or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choices = ("draw", "score", "draw-corpus", "score-corpus", "draw-check", "score-check")
    parser.add_argument("what", choices=choices)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", type=int, default=4, help="files a language, one a reader")
    parser.add_argument("--number", type=int, default=60, help="support dialogues of each language")
    options = parser.parse_args(words)
    if options.what == "draw":
        draw(
            options.folder,
            options.parts,
            lambda language: (one.dialogue for one in worries(language).values()),
        )
        return 0
    if options.what == "draw-corpus":
        draw(options.folder, options.parts, lambda language: corpus(language, options.number))
        return 0
    if options.what == "draw-check":
        draw(options.folder, options.parts, dialogues_of_check)
        return 0
    if options.what == "score-check":
        print(*score_check(options.folder), sep="\n")
        return 0
    if options.what == "score-corpus":
        print(*score_corpus(options.folder, options.number), sep="\n")
        return 0
    print(*score(options.folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

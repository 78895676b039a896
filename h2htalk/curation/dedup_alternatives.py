"""Several answers to one question: one dialogue of them, and the other answers carried along.

Where dialogues of one exchange share what the user says and differ in the reply, the better stays, and what was replied
in the others goes with it as `metadata.alternatives`: further references for `compose`. Such a dialogue is rejected as
`folded`. What would not stand beside the one that stays is a duplicate as any other: the same reply once more, one that
safety looks at with other eyes, one whose licence allows no mixture, or one that takes up what only its own question
says (another person's name).

Map: the answers of each part, slim, into a file for the part that their dialogue stays in. Reduce: each such file.
"""

from __future__ import annotations

import json
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.dedup_clusters import Loser
from h2htalk.curation.dedup_groups import Gathered
from h2htalk.curation.dedup_shingles import plain
from h2htalk.curation.dedup_similarity import similarity
from h2htalk.curation.licences import mixture
from h2htalk.curation.outcomes import Record
from h2htalk.curation.parts import StageFolder
from h2htalk.curation.workspace import without_erased
from h2htalk.data.dialogue import Dialogue, Language
from h2htalk.data.files import read_jsonl, write_jsonl, write_problem
from h2htalk.errors import DataError

FOLDED = "folded"  # the reason, and the folder of what the reduce step says
_ANSWERS = "answers"
MOST_FOLDED = 100  # answers that a dialogue carries: as many as `compose.references` may be
MOST_TRIED = 200  # of a question, the best first: everybody may have said hello
# Characters: no contract allows a reference of this length, and a line must stay readable.
LONGEST = 6000
_WORD = re.compile(r"\w+")


def fold(
    losers: Sequence[Loser],
    gathered: Gathered,
    before: StageFolder,
    work: Path,
    erased: frozenset[str],
    threshold: float,
) -> list[Loser]:
    """Say of which losers the answer is carried, and write what each dialogue that stays carries (`carried`).

    Args:
        losers: who goes; those with equal or nearly equal inputs may be folded.
        gathered: the dialogues.
        before: the stage that they come from.
        work: the folder of dedup's steps; what an interrupted call left there is written anew.
        erased: who was taken out.
        threshold: similarity (0 to 1) from which two replies are one.

    Returns:
        the losers in their order, the folded ones with that reason; of those that might have been, `evidence.answer`
        says why they are not: `reply`, `safety`, `licence`, `words`, `many`, `long`, `order`.

    Raises:
        DataError: a file is damaged or cannot be written.
    """
    for name in (_ANSWERS, FOLDED):
        shutil.rmtree(work / name, ignore_errors=True)
    parts = before.parts()

    def part_of(number: int) -> str:
        return parts[bisect_right(gathered.starts, number) - 1]

    # Part -> answer -> the part and id of who stays, and its rank.
    wanted: dict[str, dict[str, tuple[str, str, int]]] = {}
    found: dict[str, str] = {}  # answer -> FOLDED, or why not
    for kept, numbers in _answers(losers, gathered).items():
        place = (part_of(kept), gathered.id(kept))
        for rank, number in enumerate(numbers[:MOST_TRIED]):
            wanted.setdefault(part_of(number), {})[gathered.id(number)] = (*place, rank)
        found.update((gathered.id(number), "many") for number in numbers[MOST_TRIED:])
    for part in sorted(wanted):
        _sort_out(before.part_records(part), wanted[part], work / _ANSWERS, erased, found)
    for path in sorted((work / _ANSWERS).glob("*.jsonl")):
        lines = _reduced(path, before.part_records(path.stem), threshold, found)
        write_jsonl(work / FOLDED / path.name, lines)
    shutil.rmtree(work / _ANSWERS, ignore_errors=True)
    return [_said(loser, found.get(loser.id)) for loser in losers]


def _said(loser: Loser, found: str | None) -> Loser:
    if found is None:
        return loser
    if found == FOLDED:
        return replace(loser, reason=FOLDED)
    return replace(loser, evidence={**loser.evidence, "answer": found})


def carried(work: Path, part: str) -> dict[str, Record]:
    """What the dialogues of a part carry, by id: `alternatives`, and the `licence` of all together."""
    path = work / FOLDED / f"{part}.jsonl"
    return {record["id"]: record for _, record in read_jsonl(path)} if path.exists() else {}


# --- Map ----------------------------------------------------------------------------------------------------------


def _answers(losers: Iterable[Loser], gathered: Gathered) -> dict[int, list[int]]:
    """The dialogues of one exchange that go for another's inputs: who stays -> who may be folded, the best first."""

    def one_exchange(number: int) -> bool:
        sides = gathered.sides(number)
        return gathered.quality_of(number).turns == -2 and bool(sides.user and sides.companion)

    found: dict[int, list[int]] = {}
    for loser in losers:
        # What goes because a split holds it has nobody that stays for it.
        stays = loser.kept >= 0 and loser.evidence.get("on") == "inputs"
        if stays and one_exchange(loser.number) and one_exchange(loser.kept):
            found.setdefault(loser.kept, []).append(loser.number)
    return {kept: sorted(numbers, key=gathered.quality_of) for kept, numbers in sorted(found.items())}


def _sort_out(
    records: Iterator[Record],
    wanted: Mapping[str, tuple[str, str, int]],
    folder: Path,
    erased: frozenset[str],
    refused: dict[str, str],
) -> None:
    """Add a part's answers to the files of the parts that they stay in; into `refused` why some cannot be carried."""
    lines: dict[str, list[str]] = {}
    for record in without_erased(records, erased):
        if record.get("id") not in wanted:
            continue
        part, kept, rank = wanted[record["id"]]
        if not _is_exchange(record):
            refused[record["id"]] = "order"
        elif len(record["messages"][1]["content"]) > LONGEST:
            refused[record["id"]] = "long"
        else:
            answer = {"of": kept, "rank": rank, "record": record}
            lines.setdefault(part, []).append(json.dumps(answer) + "\n")
    for part, found in sorted(lines.items()):
        path = folder / f"{part}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="ascii") as file:
                file.writelines(found)
        except OSError as error:
            raise DataError(f"{path}: {write_problem(error)}") from error


def _is_exchange(record: Record) -> bool:
    """Whether a user says something, a companion replies, and that is all."""
    return [turn["role"] for turn in record["messages"]] == ["user", "companion"]


def _exchange(dialogue: Dialogue) -> tuple[str, str]:
    """What the user says and what is replied, of a dialogue in which that is all."""
    return dialogue.messages[0].content, dialogue.messages[1].content


# --- Reduce -------------------------------------------------------------------------------------------------------


def _reduced(
    path: Path, records: Iterator[Record], threshold: float, found: dict[str, str]
) -> Iterator[Record]:
    """A line for each dialogue of a part that carries something; what became of each answer goes into `found`."""
    answers: dict[str, list[Record]] = {}
    for _, line in read_jsonl(path):
        answers.setdefault(line["of"], []).append(line)
    for record in records:
        ranked = sorted(answers.get(record.get("id", ""), ()), key=lambda line: int(line["rank"]))
        if not ranked:
            continue
        if not _is_exchange(record):
            found.update((line["record"]["id"], "order") for line in ranked)
            continue
        answers_to = [Dialogue.from_dict(line["record"]) for line in ranked]
        licence, carries = _chosen(Dialogue.from_dict(record), answers_to, threshold, found)
        if carries:
            yield {"id": record["id"], "licence": licence, "alternatives": carries}


def _chosen(
    kept: Dialogue, answers: Sequence[Dialogue], threshold: float, found: dict[str, str]
) -> tuple[str, list[Record]]:
    """Which answers stand beside the reply of the dialogue that stays, and the licence of all together."""
    asked, own = _exchange(kept)
    replies = [plain(own, kept.language)]
    licence, held = kept.licence, {kept.licence}
    alternatives: list[Record] = []
    for answer in answers:
        user, text = _exchange(answer)
        reply = plain(text, kept.language)
        mixed = _mixed({*held, answer.licence})
        if len(alternatives) == MOST_FOLDED:
            found[answer.id] = "many"
        elif _seen(answer) != _seen(kept):
            found[answer.id] = "safety"
        elif mixed is None:
            found[answer.id] = "licence"
        elif any(similarity(reply, other, threshold) >= threshold for other in replies):
            found[answer.id] = "reply"
        elif takes_up_its_own(asked, user, text, kept.language):
            found[answer.id] = "words"
        else:
            found[answer.id] = FOLDED
            replies.append(reply)
            held.add(answer.licence)
            licence = mixed
            alternatives.append(_alternative(answer, text))
    return licence, alternatives


def _mixed(licences: set[str]) -> str | None:
    """The licence of all together; None where there is none."""
    return next(iter(licences)) if len(licences) == 1 else mixture(licences).licence


def _seen(dialogue: Dialogue) -> tuple[object, object, frozenset[str]]:
    """What safety decided, how much at risk it saw somebody, and what it found."""
    safety = dialogue.metadata.get("safety")
    if not isinstance(safety, Mapping):
        return None, None, frozenset()
    return safety.get("action"), safety.get("risk"), frozenset(map(str, safety.get("tags") or ()))


def _alternative(answer: Dialogue, text: str) -> dict[str, Any]:
    found = {
        "id": answer.id,
        "text": text,
        "licence": answer.licence,
        "provenance": {**answer.provenance, "dialogue": answer.id},
    }
    safety = answer.metadata.get("safety")
    return found | ({"safety": safety} if safety else {})


def takes_up_its_own(kept: str, user: str, reply: str, language: Language) -> bool:
    """Whether a reply says words that stand in its own question and not in the one that stays: a name, a place."""
    asked, own, said = (_words(text, language) for text in (kept, user, reply))
    return not said.isdisjoint(own - asked)


def _words(text: str, language: Language) -> frozenset[str]:
    """Words; of Chinese, which has no spaces, every two characters."""
    found = plain(text, language)
    if language == "en":
        return frozenset(_WORD.findall(found))
    return frozenset(found[at : at + 2] for at in range(len(found) - 1))

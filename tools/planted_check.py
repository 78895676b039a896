"""Draw planted replies for readers who say which statements are true, and compare what they said with the key.

    python tools/planted_check.py draw FOLDER [--number 60] [--seed 1] [--splits high_risk arcs] [--languages en]
    python tools/planted_check.py score FOLDER

`draw` writes FOLDER/en.jsonl and zh.jsonl for `tools/reading/planted_check.md`, and FOLDER/key/en.jsonl and zh.jsonl,
which readers do not get. Replies are drawn as a study draws them, with the references as the replies of its model;
places of all splits are mixed, and as many statements are true as false. `score` reads FOLDER/out/*.jsonl (a reader's
file is named for the language, such as `en-1.jsonl`), and prints how often each reader and the key agree and every
item about which they do not.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planted_records import GROUPS, cases_of, find_point

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from h2htalk.benchmark.planted.draw import Drawing, PlantedReply, draw_planted
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.conversations import LIVE, Study, StudyReply
from h2htalk.benchmark.studies.points.judge_requests import hints
from h2htalk.benchmark.studies.points.point_answers import shown_turns
from h2htalk.benchmark.studies.run_study import plan_study
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.data.case import Case, script
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.planted import PlantedPlace, load_planted
from h2htalk.data.scenario import Turn
from support.wordings import words_of

STUDIES = {split: study for study, split in GROUPS.items()}
NOBODY = "server:nobody@http://127.0.0.1:9/v1"  # no call is made
A_DRAW = 40  # replies of a split


@dataclass(frozen=True)
class Drawn:
    """A planted reply as a study draws it, with the place whose wording it holds."""

    split: str
    place: PlantedPlace
    reply: PlantedReply

    @property
    def wording(self) -> str:
        """The words of known truth."""
        wordings = self.place.true_wordings if self.reply.true else self.place.false_wordings
        text = words_of(self.reply.text)
        return next(wording for wording in wordings if words_of(wording) in text)


def study_of(split: str) -> tuple[Study, list[StudyReply]]:
    """The study of a split, with the references as the replies of its model."""
    ask = EvaluateSpec(model=NOBODY, out="unused", split=split)
    study = plan_study(StudySpec(study=STUDIES[split], ask=ask, judge=NOBODY))  # type: ignore[arg-type]
    study = replace(study, spec=replace(study.spec, arms=study.spec.arms[:1]))
    replies: list[StudyReply] = []
    for case in study.cases:
        replies += references(case, study.spec.arms[0])
    return study, replies


def references(case: Case, arm: str) -> Iterator[StudyReply]:
    """The references of a case as replies, each with what was said before it."""
    turns = list(case.history)
    for place, turn, message in script(case):
        turns.append(message)
        if turn.reference:
            yield StudyReply(arm, case.id, place, LIVE, text=turn.reference, said=tuple(turns))
        turns.append(Turn("companion", turn.reference or "..."))


def planted_replies(
    splits: Sequence[str], language: Language, seed: str, number: int
) -> list[Drawn]:
    """At least so many planted replies of a language as studies draw them: composed, and chosen together."""
    drawn: list[Drawn] = []
    draws = math.ceil(number / (A_DRAW * len(splits)))
    for split in splits:
        study, replies = study_of(split)
        drawing = Drawing(study, replies)
        places = {(one.case, one.place, one.point): one for one in load_planted(split)}
        for at in range(draws):
            for reply in draw_planted(
                drawing, "a reader", language, study.spec.arms, f"{seed} {at}"
            ):
                place = places[reply.case, reply.place, reply.point]
                drawn.append(Drawn(split=split, place=place, reply=reply))
    return drawn


def choose(available: Sequence[Drawn], number: int, draw: random.Random) -> list[Drawn]:
    """Choose as many true replies as false ones, from every split alike and from as many places as there are."""
    queues = defaultdict[tuple[str, bool], list[Drawn]](list)
    for drawn in draw.sample(available, len(available)):
        queues[drawn.split, drawn.reply.true].append(drawn)
    taken = Counter[str]()
    chosen: list[Drawn] = []
    while len(chosen) < number and any(queues.values()):
        for key in sorted(queues):
            queues[key].sort(key=lambda drawn: taken[drawn.place.id])
            if queues[key] and len(chosen) < number:
                drawn = queues[key].pop(0)
                taken[drawn.place.id] += 1
                chosen.append(drawn)
    draw.shuffle(chosen)
    return chosen


def said_before(case: Case, place: str) -> tuple[Turn, ...]:
    """What a rater sees before a reply: the turns of its session, with the references as replies."""
    turns = list(case.history)
    for name, turn, message in script(case):
        turns.append(message)
        if name == place:
            break
        turns.append(Turn("companion", turn.reference or "..."))
    return shown_turns(StudyReply("none", case.id, place, LIVE, said=tuple(turns)))


def item(drawn: Drawn, name: str) -> dict[str, Any]:
    """What a reader gets."""
    place = drawn.place
    case, _, point = find_point(cases_of(drawn.split), place.id)
    reply = drawn.reply.text
    known = "; ".join(hints(reply, point, case))
    turns = [turn.content for turn in said_before(case, place.place) if turn.role == "user"]
    statement = point.text + (f" [{known}]" if known else "")
    return {"id": name, "turns": turns, "reply": reply, "statement": statement}


def draw_items(
    folder: Path, number: int, seed: str, splits: Sequence[str], languages: Sequence[Language]
) -> None:
    """Write what readers get and, elsewhere, what is true."""
    for path in (folder / "key", folder / "out"):
        path.mkdir(parents=True, exist_ok=True)
    for language in languages:
        draw = random.Random(f"{seed} {language}")
        chosen = choose(planted_replies(splits, language, seed, number), number, draw)
        names = [f"{language}-{at:03}" for at in range(1, len(chosen) + 1)]
        named = list(zip(names, chosen, strict=True))
        write_jsonl(folder / f"{language}.jsonl", [item(one, name) for name, one in named])
        key = [
            {
                "id": name,
                "split": one.split,
                "place": one.place.id,
                "wording": one.wording,
                "true": one.reply.true,
            }
            for name, one in named
        ]
        write_jsonl(folder / "key" / f"{language}.jsonl", key)
        counts = Counter((one.split, one.reply.true) for one in chosen)
        print(
            language,
            len(chosen),
            "items of",
            len({one.place.id for one in chosen}),
            "places",
            dict(counts),
        )


def compared(folder: Path) -> Iterator[tuple[str, int, int, list[str]]]:
    """Yield each reader's file with how many answers agree, of how many, and a line for each that does not."""
    for path in sorted((folder / "out").glob("*.jsonl")):
        language = path.stem.partition("-")[0]
        key = {line["id"]: line for _, line in read_jsonl(folder / "key" / f"{language}.jsonl")}
        items = {line["id"]: line for _, line in read_jsonl(folder / f"{language}.jsonl")}
        right, others = 0, []
        lines = [line for _, line in read_jsonl(path)]
        for line in lines:
            known = key[line["id"]]
            if line["true"] == known["true"]:
                right += 1
                continue
            given = items[line["id"]]
            others.append(
                f"  {line['id']} {known['place']}: the key says {known['true']}, the reader {line['true']}: "
                f"{line.get('why', '')}\n    {given['statement']}\n    {given['reply']!r}"
            )
        yield path.name, right, len(lines), others


def main(words: Sequence[str]) -> int:
    """Draw or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("draw", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=60, help="of items, a language")
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--splits", nargs="+", default=sorted(GROUPS.values()), choices=sorted(GROUPS.values())
    )
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=list(LANGUAGES))
    options = parser.parse_args(words)
    if options.what == "draw":
        draw_items(options.folder, options.number, options.seed, options.splits, options.languages)
        return 0
    for name, right, number, others in compared(options.folder):
        print(f"{name}: {right} of {number} as the key says", *others, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

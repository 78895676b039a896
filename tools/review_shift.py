"""Measure how far the reviewer's ratings move with the safety questions in its call.

    python tools/review_shift.py draw FOLDER [--candidates 20] [--seed 0]
    python tools/review_shift.py score FOLDER

`draw` writes for each language the rules of both forms (FOLDER/rules-LANGUAGE-with.txt and -without.txt) and the task
files of four readers (FOLDER/reader-1-en.jsonl and so on): the rubric's requests about candidates of `mini`, of which
every fourth has the reference of another item. The form `without` is the product's prompt without the safety questions.
Each reader reads each candidate once, half of them in either form, and each candidate has two readings in each form:
what two readings of one form differ by is the noise that a shift stands beside. `score` reads FOLDER/out/*.jsonl
(`tools/reading/review_shift.md`) through the product's own parser, and prints for each language and criterion the mean
rating in both forms, the shift with its 95 % interval over candidates, and how often verdict and status are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from h2htalk.chat.protocol import Reply, Request
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.review.reviewer import (
    CRITERIA,
    QUESTIONS,
    RUBRIC_TEMPLATES,
    Reviewer,
    Rubric,
    read_rubric,
)
from h2htalk.curation.review.stage import decide_review
from h2htalk.curation.stages import ReviewSettings
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.sampling import stratified_sample
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.distributions import t_quantile

WITH, WITHOUT = "with", "without"
FORMS = (WITH, WITHOUT)
READERS = 4  # a language
SWAPPED_EVERY = 4  # candidates; one of so many has the reference of another item, so that not all ratings are high
SECRET = b"review shift"
MODEL = "openai:gpt-4o"  # for the form of requests; no call is made
RULES = RUBRIC_TEMPLATES[0]
PLACES = ("in_scenario", "in_reference")
NOTHING = {
    "harm": "",
    "severity": 0,
    "explicit": False,
    "under_18": False,
    "danger_what": "",
    "danger": "none",
    "personal_data": "",
}


@dataclass(frozen=True)
class Reading:
    """A reply of a reader about a candidate."""

    candidate: str
    form: str
    rubric: Rubric


def draw_candidates(language: Language, count: int, seed: int) -> dict[str, Candidate]:
    """Candidates by an id that tells nothing, in the order of their ids."""
    chosen = stratified_sample(load_split("mini").select(language).scenarios, count)
    random.Random(seed).shuffle(chosen)
    found: dict[str, Candidate] = {}
    for number, scenario in enumerate(chosen):
        hidden = hashlib.sha256(f"{seed} {scenario.id}".encode()).hexdigest()[:8]
        text = (
            other_reference(scenario, chosen) if number % SWAPPED_EVERY == 0 else scenario.reference
        )
        shown = replace(scenario, id=hidden, references=(text,))
        found[hidden] = Candidate(shown, (Reference(text),))
    return dict(sorted(found.items()))


def other_reference(scenario: Scenario, others: Sequence[Scenario]) -> str:
    """The reference of another item, of the same subtask where there is one."""
    ranked = sorted(others, key=lambda other: (other.subtask != scenario.subtask, other.id))
    return next(other.reference for other in ranked if other.id != scenario.id)


def prompts_of(form: str) -> Prompts:
    """The product's prompts, or the same without the safety questions."""
    bundled = Prompts.load()
    if form == WITH:
        return bundled
    templates = {name: (Path(bundled.origin(name)), text) for name, text in bundled.sources.items()}
    for language in LANGUAGES:
        name = f"{language}/{RULES}"
        path, text = templates[name]
        templates[name] = (path, without_questions(text))
    return Prompts.of(templates)


def without_questions(rules: str) -> str:
    """The rules of a rubric without the safety questions and what introduces them, and an example without answers."""
    paragraphs = rules.split("\n\n")
    asked = next(number for number, text in enumerate(paragraphs) if QUESTIONS in text)
    kept = (
        paragraphs[: asked - 1] + paragraphs[asked + 1 :]
    )  # what stands before the questions introduces them
    *before, example = "\n\n".join(kept).rstrip("\n").split("\n")
    fields = json.loads(example)
    shortened = {name: value for name, value in fields.items() if name not in PLACES}
    return "\n".join([*before, json.dumps(shortened, ensure_ascii=False)]) + "\n"


def request_of(candidate: Candidate, form: str) -> Request:
    """The request about a candidate in a form."""
    reviewer = Reviewer(
        settings=ReviewSettings(model=MODEL), seed=1, prompts=prompts_of(form), secret=SECRET
    )
    return reviewer.rubric(candidate, candidate.references[0].text)


def form_of(reader: int, number: int) -> str:
    """The form in which a reader (from 0) reads the candidate of this number: two readers read it in either form."""
    return FORMS[(reader + number) % len(FORMS)]


def draw(folder: Path, count: int, seed: int) -> None:
    """Write what readers get."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        candidates = draw_candidates(language, count, seed)
        tasks = defaultdict[int, list[dict[str, str]]](list)
        for number, candidate in enumerate(candidates.values()):
            for reader in range(READERS):
                form = form_of(reader, number)
                rules, question = request_of(candidate, form).messages
                name = f"rules-{language}-{form}.txt"
                (folder / name).write_text(rules.content, encoding="utf-8")
                task = {
                    "id": f"{candidate.id}/{form}/{reader + 1}",
                    "rules": name,
                    "prompt": question.content,
                }
                tasks[reader].append(task)
        for reader, lines in tasks.items():
            path = folder / f"reader-{reader + 1}-{language}.jsonl"
            write_jsonl(path, lines)
            print(f"{path.name}: {len(lines)} questions")


def read_reply(text: str, form: str) -> Rubric:
    """Read a reply as the product does; one of the form `without` gets answers that say nothing."""
    if form == WITHOUT:
        try:
            fields: Any = json.loads(text)
        except ValueError:
            return Rubric(unscored="malformed_output")
        if isinstance(fields, dict):
            text = json.dumps({**fields, **dict.fromkeys(PLACES, NOTHING)}, ensure_ascii=False)
    return read_rubric(Reply(text))


def read_replies(folder: Path) -> list[Reading]:
    """Every reply of every reader."""
    readings: list[Reading] = []
    for path in sorted((folder / "out").glob("*.jsonl")):
        for _, line in read_jsonl(path):
            candidate, form, _ = line["id"].split("/")
            readings.append(
                Reading(candidate=candidate, form=form, rubric=read_reply(str(line["reply"]), form))
            )
    return readings


def score(folder: Path, count: int, seed: int) -> Iterator[str]:
    """Yield the lines of the result."""
    readings = read_replies(folder)
    for language in LANGUAGES:
        candidates = draw_candidates(language, count, seed)
        own = [one for one in readings if one.candidate in candidates]
        unscored = [one for one in own if one.rubric.unscored]
        by_form = grouped([one for one in own if not one.rubric.unscored])
        paired = [name for name in candidates if all(by_form[name, form] for form in FORMS)]
        yield f"{language}: {len(paired)} candidates read in both forms, {len(unscored)} replies unscored"
        if len(paired) < 2:
            continue
        for criterion in CRITERIA:
            yield shift_of(criterion, by_form, paired)
        yield same_of("verdict", by_form, paired, lambda name, rubric: rubric.verdict)
        yield same_of("status", by_form, paired, partial(status_of, candidates))


def status_of(candidates: Mapping[str, Candidate], name: str, rubric: Rubric) -> str:
    """The status that the scores and the verdict alone give a candidate."""
    return decide_review(rubric, candidates[name].scenario.subtask)[0]


Grouped = Mapping[tuple[str, str], list[Rubric]]  # candidate and form


def grouped(readings: Sequence[Reading]) -> Grouped:
    """The reviews of each candidate in each form."""
    found = defaultdict[tuple[str, str], list[Rubric]](list)
    for one in readings:
        found[one.candidate, one.form].append(one.rubric)
    return found


def shift_of(criterion: str, by_form: Grouped, names: Sequence[str]) -> str:
    """The mean ratings of a criterion in both forms, and the shift with its interval."""
    means = {
        (name, form): fmean(rubric.scores[criterion] for rubric in by_form[name, form])
        for name in names
        for form in FORMS
    }
    shifts = [means[name, WITH] - means[name, WITHOUT] for name in names]
    shift = fmean(shifts)
    half = t_quantile(len(shifts) - 1) * stdev(shifts) / math.sqrt(len(shifts))
    of_form = {form: fmean(means[name, form] for name in names) for form in FORMS}
    noise = repeated(
        by_form,
        names,
        lambda first, second: abs(first.scores[criterion] - second.scores[criterion]),
    )
    line = f"  {criterion}: {of_form[WITHOUT]:.2f} without, {of_form[WITH]:.2f} with; shift {shift:+.2f} "
    line += f"({shift - half:+.2f} to {shift + half:+.2f})"
    return f"{line}; two readings of one form differ by {fmean(noise):.2f}" if noise else line


def same_of(
    what: str, by_form: Grouped, names: Sequence[str], value: Callable[[str, Rubric], str]
) -> str:
    """How often two readings say the same: of both forms, and of one form."""
    across: list[bool] = []
    within: list[bool] = []
    for name in names:
        answers = {form: [value(name, rubric) for rubric in by_form[name, form]] for form in FORMS}
        across += [first == second for first in answers[WITH] for second in answers[WITHOUT]]
        within += [first == second for own in answers.values() for first, second in pairs_of(own)]
    line = f"  {what}: the same in {sum(across)} of {len(across)} pairs of readings in both forms"
    return f"{line}, in {sum(within)} of {len(within)} of one form"


def repeated(
    by_form: Grouped, names: Sequence[str], compare: Callable[[Rubric, Rubric], float]
) -> list[float]:
    """Compare each two readings of one candidate in one form."""
    pairs = [pair for name in names for form in FORMS for pair in pairs_of(by_form[name, form])]
    return [compare(first, second) for first, second in pairs]


def pairs_of(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each two of some values."""
    return [
        (first, second) for number, first in enumerate(values) for second in values[number + 1 :]
    ]


def main(words: Sequence[str]) -> int:
    """Draw or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("draw", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--candidates", type=int, default=20, help="candidates a language")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    options = parser.parse_args(words)
    if options.what == "draw":
        draw(options.folder, options.candidates, options.seed)
        return 0
    print(*score(options.folder, options.candidates, options.seed), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Baselines: trivial answers that need no model, scored beside every model.

Adding one: a function `(scenarios, pool) -> answers`, and its entry in `BASELINES`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence

from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import find_language
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response, read_answers
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario, ScheduleEntry, Turn
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, suggest

Answer = Response | FailedResponse
Baseline = Callable[[Sequence[Scenario], Sequence[Scenario]], list[Answer]]


def constant(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Answer]:
    """Answer every item with one line of its language.

    RecollectionSynthesis gets the null line, which is 64 % of the authors' references.
    """
    answers: list[Answer] = []
    for scenario in scenarios:
        language = find_language(scenario.language)
        if SUBTASKS[scenario.subtask].has_null_line:
            text = language.null_memory
        else:
            text = language.constant_reply
        answers.append(Response(scenario.id, 0, text, "stop"))
    return answers


def copy_last_turn(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Answer]:
    """Answer with the last turn, memory, plan or text among the inputs."""
    return [Response(scenario.id, 0, _last_input(scenario), "stop") for scenario in scenarios]


def _last_input(scenario: Scenario) -> str:
    *_, last = scenario.inputs.values()
    if isinstance(last, str):
        return last
    entry = last[-1]
    if isinstance(entry, Turn):
        return entry.content
    if isinstance(entry, ScheduleEntry):
        return f"{entry.time} {entry.activity}"
    return entry


def random_reference(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Answer]:
    """Answer with the reference of another scenario of the same subtask and language.

    A hash of the id chooses it from `pool`, so row order does not matter. An item that has no
    neighbour is a failure.
    """
    neighbours: dict[tuple[str, str], list[Scenario]] = defaultdict(list)
    for scenario in sorted(pool, key=lambda scenario: scenario.id):
        neighbours[scenario.subtask, scenario.language].append(scenario)

    answers: list[Answer] = []
    for scenario in scenarios:
        group = neighbours[scenario.subtask, scenario.language]
        candidates = [candidate for candidate in group if candidate.id != scenario.id]
        if candidates:
            digest = hashlib.sha256(scenario.id.encode()).digest()
            chosen = candidates[int.from_bytes(digest[:8], "big") % len(candidates)]
            answers.append(Response(scenario.id, 0, chosen.reference, "stop"))
        else:
            failure = Failure("no_neighbour", "no other scenario of this subtask and language", 0)
            answers.append(FailedResponse(scenario.id, 0, failure))
    return answers


BASELINES: dict[str, Baseline] = {
    "constant": constant,
    "copy-last-turn": copy_last_turn,
    "random-reference": random_reference,
}
# Baselines that a split with private references does not have.
NEEDS_REFERENCES = ("random-reference",)


def find_baseline(name: str) -> Baseline:
    """Return the baseline of that name. Raises ConfigError, with the choices, for another name."""
    if name not in BASELINES:
        raise ConfigError(
            f"unknown baseline {name!r}; {suggest(name, BASELINES)}choose from {', '.join(BASELINES)}"
        )
    return BASELINES[name]


def write_baselines(folder: RunFolder, split: Split, whole_split: Split | None) -> None:
    """Store the baselines' answers, so that every later scoring uses the same ones.

    `whole_split`: the split before selection, from which random references are drawn; None removes the
    stored answers.
    """
    if whole_split is None:
        shutil.rmtree(folder.baselines, ignore_errors=True)
        return
    private = not all(scenario.references for scenario in whole_split.scenarios)
    for name, baseline in BASELINES.items():
        if private and name in NEEDS_REFERENCES:
            continue
        answers = baseline(split.scenarios, whole_split.scenarios)
        write_jsonl(folder.baselines / f"{name}.jsonl", (answer.to_dict() for answer in answers))


def read_baselines(folder: RunFolder) -> dict[str, Answers]:
    """Read the stored answers of each baseline, by name; empty where the run has none."""
    answers: dict[str, Answers] = {}
    for name in BASELINES:
        path = folder.baselines / f"{name}.jsonl"
        if path.exists():
            answers[name] = read_answers(path)
    return answers

"""Baselines: trivial answers that every model should beat."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence

from h2htalk.data.dialogue import Turn
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import find_language
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response, fold_answer, read_response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario, ScheduleEntry
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, suggest

Baseline = Callable[[Sequence[Scenario], Sequence[Scenario]], list[Response | FailedResponse]]


def constant(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer every item with one line; recollection_synthesis with the null line (64 % of the authors' references)."""
    lines = ((s.id, SUBTASKS[s.subtask].has_null_line, find_language(s.language)) for s in scenarios)
    return [Response(name, 0, own.null_memory if null else own.constant_reply, "stop") for name, null, own in lines]


def copy_last_turn(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer with the last turn, memory, plan or text among the inputs."""
    return [Response(s.id, 0, _last_input(s), "stop") for s in scenarios]


def _last_input(scenario: Scenario) -> str:
    value = list(scenario.inputs.values())[-1]
    entry = value if isinstance(value, str) else value[-1]
    if isinstance(entry, Turn):
        return entry.content
    return f"{entry.time} {entry.activity}" if isinstance(entry, ScheduleEntry) else entry


def random_reference(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer with the reference of another scenario of the same subtask and language, chosen by a hash of the id.

    `pool` holds the scenarios and may hold more. The choice does not depend on row order; an item without such
    a neighbour is a failure.
    """
    groups: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(pool, key=lambda s: s.id):
        groups.setdefault((scenario.subtask, scenario.language), []).append(scenario)
    places = {s.id: place for group in groups.values() for place, s in enumerate(group)}
    answers: list[Response | FailedResponse] = []
    for scenario in scenarios:
        group = groups[scenario.subtask, scenario.language]
        if len(group) < 2:
            failure = Failure("no_neighbour", "no other scenario of this subtask and language", 0)
            answers.append(FailedResponse(scenario.id, 0, failure))
            continue
        digest = hashlib.sha256(scenario.id.encode()).digest()
        pick = int.from_bytes(digest[:8], "big") % (len(group) - 1)
        pick += pick >= places[scenario.id]  # never itself
        answers.append(Response(scenario.id, 0, group[pick].reference, "stop"))
    return answers


BASELINES: dict[str, Baseline] = {
    "constant": constant,
    "copy-last-turn": copy_last_turn,
    "random-reference": random_reference,
}
NEEDS_REFERENCES = ("random-reference",)  # which a split with private references does not have


def find_baseline(name: str) -> Baseline:
    """Return the baseline of that name. Raises ConfigError, with the choices, for another name."""
    if name not in BASELINES:
        raise ConfigError(f"unknown baseline {name!r}; {suggest(name, BASELINES)}choose from {', '.join(BASELINES)}")
    return BASELINES[name]


def write_baselines(folder: RunFolder, split: Split, whole: Split | None) -> None:
    """Store the baselines' answers, so that a later scoring uses the same ones.

    `whole` is the split before selection, from which random references are drawn. None removes the baselines.
    """
    if whole is None:
        shutil.rmtree(folder.baselines, ignore_errors=True)
        return
    private = not all(scenario.references for scenario in whole.scenarios)
    for name, baseline in BASELINES.items():
        if private and name in NEEDS_REFERENCES:
            continue
        answers = baseline(split.scenarios, whole.scenarios)
        write_jsonl(folder.baselines / f"{name}.jsonl", (answer.to_dict() for answer in answers))


def read_baselines(folder: RunFolder) -> dict[str, Answers]:
    """Read the stored answers of each baseline, by name; empty where the run has none."""
    baselines: dict[str, Answers] = {}
    for name in BASELINES:
        path = folder.baselines / f"{name}.jsonl"
        if path.exists():
            baselines[name] = {}
            for where, record in read_jsonl(path):
                fold_answer(baselines[name], read_response(record, where))
    return baselines

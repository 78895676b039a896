"""The Recollection subtasks in the memory study: what an arm lets the model see of each scenario's material.

The material is a history or a list of memories. `none` keeps its last entry, `window` the last ones, `whole` all. The
arm `explicit` has no row: these subtasks are what its memory is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from h2htalk.benchmark.metrics.metric_table import Metrics
from h2htalk.benchmark.studies.conversations import Asker, Conversation, StudyReply, filled
from h2htalk.benchmark.studies.measure import observe_texts
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS

RECOLLECTION = "recollection"
SPLIT = "mini"
ARMS = ("none", "window", "whole")
FIGURES = ("s", "lexical")


def recollection_split(spec: StudySpec) -> Split:
    """The scenarios of the Recollection subtasks of `mini`, in the study's language and limit."""
    names = [name for name, subtask in SUBTASKS.items() if subtask.dimension == RECOLLECTION]
    return load_split(SPLIT).select(spec.ask.language, names, spec.ask.limit)


def recollection_conversations(asker: Asker, split: Split) -> Iterator[Conversation]:
    """Yield one request for each scenario, in the arms that differ here."""
    if asker.arm in ARMS:
        for scenario in split.scenarios:
            yield _ask(asker, scenario, split)


def _ask(asker: Asker, scenario: Scenario, split: Split) -> Conversation:
    kept = {"none": 1, "window": asker.spec.window, "whole": None}[asker.arm]
    shown = replace(scenario, inputs=_cut(scenario.inputs, kept))
    messages = asker.prompts.prompts.messages(shown, split.personas[scenario.persona], asker.spec.sap_of(asker.arm))
    blank = StudyReply(asker.arm, scenario.id, "", RECOLLECTION)
    asked = asker.request(blank, messages, SUBTASKS[scenario.subtask].max_tokens)
    return [filled(blank, asked, (yield asked))]


def _cut(inputs: Mapping[str, Any], kept: int | None) -> dict[str, Any]:
    """The last entries of each list of a scenario's inputs."""
    return {
        name: value[-kept:] if kept is not None and isinstance(value, tuple) else value
        for name, value in inputs.items()
    }


def observe_recollection(spec: StudySpec, replies: Sequence[StudyReply], metrics: Metrics) -> Iterator[Observation]:
    """S and the lexical mean of each answer, as figures of its subtask: `s.recollection_synthesis`."""
    if not replies:
        return
    split = recollection_split(spec)
    subtasks = {scenario.id: scenario.subtask for scenario in split.scenarios}
    for row in observe_texts(replies, split, metrics, FIGURES):
        yield replace(row, figure=f"{row.figure}.{subtasks[row.item]}", study=RECOLLECTION)

"""How often the answers of a run show each failure signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from h2htalk.benchmark.failures.known import Known, known_of
from h2htalk.benchmark.failures.memory_collapse import memory_collapse
from h2htalk.benchmark.failures.missed_hint import missed_hint
from h2htalk.benchmark.failures.planning_fragmentation import planning_fragmentation
from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.statistics.table2_averages import Cell, ItemValue, aggregate_slices
from h2htalk.data.languages import Language
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import Answers
from h2htalk.data.scenario import Scenario

Rule = Callable[[str, Known, Language], bool]  # of a reply, what was known and the language
_DIALOGUE = ("dialogue_base", "dialogue_emotion", "dialogue_schedule")
_PLANS = ("itinerary_middle", "itinerary_advanced", "itinerary_response", "itinerary_initialization")
# Signature -> its rule, and the subtasks in which an answer can show it.
SIGNATURES: Mapping[str, tuple[Rule, tuple[str, ...]]] = {
    "memory_collapse": (memory_collapse, (*_DIALOGUE, "itinerary_initialization", "recollection_initialization")),
    "planning_fragmentation": (planning_fragmentation, ("dialogue_schedule", *_PLANS)),
    "missed_hint": (missed_hint, _DIALOGUE),
}


def failure_rates(scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]) -> dict[str, Cell]:
    """The rate of each signature in percent, over the items of its subtasks.

    An item counts by the share of its answers that show it; one without an answer to each sample has no value.
    """
    return aggregate_slices(_values(scenarios, answers, scores))


def _values(scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]) -> Iterator[ItemValue]:
    for scenario in scenarios:
        rules = {name: rule for name, (rule, subtasks) in SIGNATURES.items() if scenario.subtask in subtasks}
        if rules:
            known = known_of(scenario)
            replies = [answers.get((scenario.id, sample.sample)) for sample in scores[scenario.id].samples]
            texts = [reply.answer for reply in replies if isinstance(reply, Response)]
            for name, rule in rules.items():
                shown = [rule(text, known, scenario.language) for text in texts]
                yield ItemValue(scenario.id, name, fmean(shown) if shown and len(texts) == len(replies) else None)

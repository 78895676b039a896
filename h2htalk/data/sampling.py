"""The sample that `--limit` takes: spread over subtasks and languages, and the same for the same ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from h2htalk.data.scenario import Scenario
from h2htalk.errors import ConfigError


def stratified_sample(scenarios: Sequence[Scenario], limit: int) -> list[Scenario]:
    """Sample at most `limit` scenarios, one a stratum (subtask, language) in turn, chosen by a hash of the id.

    Every subtask comes once, its languages by turns, before any comes twice; of the turns of cases, every kind. The
    sample of a smaller limit is part of the sample of a larger one; row order does not matter.
    """
    if limit < 1:
        raise ConfigError(f"--limit is {limit}; it must be 1 or more")
    strata: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(scenarios, key=lambda item: hashlib.sha256(item.id.encode()).digest()):
        is_turn = "case" in scenario.provenance
        group = scenario.metadata.get("kind") if is_turn else scenario.subtask
        strata.setdefault((str(group), scenario.language), []).append(scenario)
    languages_of: dict[str, list[str]] = {}
    for group, language in sorted(strata):
        languages_of.setdefault(group, []).append(language)
    ranks: list[tuple[int, int, int, str]] = []
    for number, (group, languages) in enumerate(languages_of.items()):
        for position, language in enumerate(languages):
            # Each group begins with another language.
            turn = (position - number) % len(languages)
            for depth, scenario in enumerate(strata[group, language]):
                ranks.append((depth, turn, number, scenario.id))
    chosen = {scenario_id for *_, scenario_id in sorted(ranks)[:limit]}
    return [scenario for scenario in scenarios if scenario.id in chosen]

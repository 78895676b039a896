"""Check the files of a split: every error of every line, and references against their contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from h2htalk.data.case import Case, turn_scenarios
from h2htalk.data.releases.release_folder import HUB
from h2htalk.data.scenario import Persona, Scenario, personas_of
from h2htalk.data.splits import load_split, read_items, release_part, resolve_split, split_header
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.help_lines import read_help_lines
from h2htalk.text.point_checks import decided


def check_split(name: str) -> tuple[int, list[str]]:
    """Return the number of items of a split, and a message for each error in them.

    Checked are the records, ids that occur twice, personas, and references: of a scenario against its subtask's
    contract, of a case's turn against the contract of a reply and the points that code decides.
    """
    errors: list[str] = []
    if name.startswith(HUB) or release_part(name):
        split = load_split(name)
        for item in split.items:
            errors += _located_errors(name, item, split.personas)
        return len(split.items), errors
    source = resolve_split(name)
    personas = personas_of(source)
    number = 0
    for where, read_item in read_items(source, personas, errors):
        number += 1
        if read_item is not None:
            errors += _located_errors(where, read_item, personas)
    split_header(source)
    return number, errors


def _located_errors(
    where: str, item: Scenario | Case, personas: Mapping[str, Persona]
) -> list[str]:
    return [f"{where}: {error}" for error in reference_errors(item, personas)]


def reference_errors(item: Scenario | Case, personas: Mapping[str, Persona]) -> Iterator[str]:
    """What is wrong with the references of a scenario or case, and its points that no turn names."""
    persona = personas[item.persona]
    names = tuple(persona.names.values())
    for scenario in [item] if isinstance(item, Scenario) else turn_scenarios(item):
        description = persona.descriptions[scenario.language]
        for number, reference in enumerate(scenario.references, 1):
            label = f"reference {number}" if len(scenario.references) > 1 else "reference"
            violations = check_scenario(
                reference, scenario, names, prompt=None, persona_text=description
            )
            for violation in violations:
                yield f"{scenario.id}: {label}: {violation.rule}: {violation.detail}"
    if isinstance(item, Scenario):
        return
    if item.country and item.country not in read_help_lines().by_code:
        yield f"{item.id}: country {item.country!r} is not in the help directory (ISO 3166-1, such as GB)"
    named: set[str] = set()
    for turn in item.turns():
        named.update(turn.points)
    for point in item.points:
        if point.id not in named:
            yield f"{item.id}: no turn names the point {point.id}"
    for turn in item.turns():
        if not turn.reference:
            continue
        for point in item.points_of(turn):
            holds = decided(turn.reference, point.check)
            if holds is not None and holds != (point.kind == "must"):
                yield f"{item.id}: the reference {turn.reference!r} does not meet the point {point.id} ({point.check})"

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
    if name.startswith(HUB) or release_part(name):
        split = load_split(name)
        return len(split.items), [f"{name}: {e}" for one in split.items for e in reference_errors(one, split.personas)]
    source = resolve_split(name)
    personas, errors, number = personas_of(source), list[str](), 0
    for where, item in read_items(source, personas, errors):
        number += 1
        errors += [f"{where}: {one}" for one in reference_errors(item, personas)] if item else []
    split_header(source)
    return number, errors


def reference_errors(item: Scenario | Case, personas: Mapping[str, Persona]) -> Iterator[str]:
    """What is wrong with the references of a scenario or case, and its points that no turn names."""
    persona = personas[item.persona]
    names = tuple(persona.names.values())
    for scenario in [item] if isinstance(item, Scenario) else turn_scenarios(item):
        for number, reference in enumerate(scenario.references, 1):
            of = f" {number}" if len(scenario.references) > 1 else ""
            for violation in check_scenario(reference, scenario, names, None, persona.descriptions[scenario.language]):
                yield f"{scenario.id}: reference{of}: {violation.rule}: {violation.detail}"
    if isinstance(item, Scenario):
        return
    if item.country and item.country not in read_help_lines().by_code:
        yield f"{item.id}: country {item.country!r} is not in the help directory (ISO 3166-1, such as GB)"
    named = {name for turn in item.turns() for name in turn.points}
    yield from (f"{item.id}: no turn names the point {point.id}" for point in item.points if point.id not in named)
    for turn in item.turns():
        for point in item.points_of(turn) if turn.reference else ():
            true = decided(turn.reference, point.check)
            if true is not None and true != (point.kind == "must"):
                yield f"{item.id}: the reference {turn.reference!r} does not meet the point {point.id} ({point.check})"

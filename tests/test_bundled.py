"""`tools/check_bundled.py`: the bundled splits keep every rule, and rules are broken on a copy."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.prompts.prompt_set import PromptSet, repeatable
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.data.splits import BUNDLED_FOLDER, load_split
from h2htalk.text.contracts.contract import check_scenario

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import check_bundled

Records = list[dict[str, Any]]
Edit = Callable[[Path], object]


def test_the_bundled_splits_keep_every_fast_rule() -> None:
    broken = {rule.name: rule.broken for rule in check_bundled.check(BUNDLED_FOLDER, fast=True) if rule.broken}
    assert broken == {}


@pytest.mark.parametrize("sap", [Sap(), Sap(())], ids=str)
def test_every_reference_passes_beside_the_prompt_that_models_are_sent(sap: Sap) -> None:
    mini, prompts = load_split("mini@1"), PromptSet.load()
    names = tuple(name for persona in mini.personas.values() for name in persona.names.values())
    for scenario in mini.scenarios:
        persona = mini.personas[scenario.persona]
        prompt = "\n".join(one.content for one in prompts.messages(scenario, persona, sap) if one.role == "system")
        allowed = repeatable(persona.descriptions[scenario.language], scenario.language, "")
        assert check_scenario(scenario.reference, scenario, names, prompt, allowed) == (), scenario.id


@pytest.mark.slow
def test_the_bundled_splits_pass_the_gates_of_a_release_and_load_as_data_sets() -> None:
    rules = [
        rule for rule in check_bundled.check(BUNDLED_FOLDER) if "release check" in rule.name or "rows" in rule.name
    ]
    # Texts that the classifiers of dangers, ages and accounts misread: 18 of 1,185 items.
    aged = ("high-risk-en-03", "instructions-en-implicit-help-14-d2", "arcs-zh-05", "arcs-zh-16")
    misread = ("crisis_care:", "personal_data: instructions-en-implicit-help-20-d3", *map("minors: {}:".format, aged))
    broken = [(rule.name, one) for rule in rules for one in rule.broken if not one.startswith(misread)]
    assert broken == []
    assert len(rules) == 8


def edit(file: str, change: Callable[[Records], object]) -> Edit:
    """An edit of the records of a file."""

    def run(folder: Path) -> None:
        path = folder / file
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        change(records)
        path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8")

    return run


def openings(records: Records) -> None:
    for one in records[:5]:
        one["inputs"]["history"][-1]["content"] = "Guess what happened: " + one["inputs"]["history"][-1]["content"]


CHAT, FIRST, ARCS = "mini/en-dialogue-recollection.jsonl", "mini@1/en-itinerary.jsonl", "arcs/en.jsonl"
RISK, NEEDS = "high_risk/en-high_risk.jsonl", "instructions/en-ambiguous.jsonl"
# What was broken, where, the rule that says so, and a part of what it says.
ALIKE, OPENINGS = "inputs: highest similarity in a subtask", "inputs: most openings alike in a subtask"
CONTRACTS = "records, ids, personas, contracts of references"
SAID = {"user": "As Rumi said, the wound is where the light comes in, ok?"}
QUOTED = edit(NEEDS, lambda rows: rows[0]["sessions"][0]["turns"][0].update(SAID))
UNTRAPPED = edit(ARCS, lambda rows: [fact.update(kind="stated") for fact in rows[0]["facts"] if fact["kind"] == "trap"])
BROKEN: list[tuple[Edit, str, str]] = [
    (edit(CHAT, lambda rows: rows[1].update(inputs=rows[0]["inputs"])), ALIKE, "1.00"),
    (edit(CHAT, openings), OPENINGS, "'guess what happened'"),
    (QUOTED, "quotations of a named author", "Rumi"),
    (edit(RISK, lambda rows: rows[0]["points"][0].update(aspect="other")), "points", "has no aspect"),
    (
        edit("high_risk/en-look_alike.jsonl", lambda rows: rows.__delitem__(slice(9))),
        "look_alike en: spread",
        "cases is",
    ),
    (edit(CHAT, lambda rows: rows.pop()), "mini: spread", "least in a cell is 15"),
    (edit(NEEDS, lambda rows: rows.pop()), "instructions en: spread", "families with four degrees"),
    (UNTRAPPED, "arcs en: spread", "fewest trap is 0"),
    (edit(FIRST, lambda rows: rows[0].update(reference="Ren stays at home.")), "mini@1: fingerprint", "mini@1 has the"),
]


def wordy(records: Records) -> None:
    """No user is short, and some keep goats."""
    for number, one in enumerate(records):
        for turn in one["sessions"][0]["turns"]:
            turn["user"] += " and there is nothing more to say of it" + ", ask the goat" * (number < 10)


def tagless(folder: Path) -> None:
    """Nobody is old."""
    for file in folder.glob("*/en*.jsonl"):
        file.write_text(file.read_text(encoding="utf-8").replace('"age:old"', '"adult"'), encoding="utf-8")


ASKED = {"kind": "must_not", "aspect": "give_means", "text": "The reply asks about the method."}
COUNTED, LIKE = {"text": "The reply has at most 12 words."}, "high_risk/en-look_alike.jsonl"
BROKEN += [
    (edit(RISK, lambda rows: rows[1]["points"][0].update(ASKED)), "points", "never asking"),
    (edit(RISK, lambda rows: rows[2]["points"][0].update(COUNTED)), "points", "counted by code"),
    (
        edit(RISK, lambda rows: rows[3]["points"][0].pop("true_of")),
        "high_risk: trivial answers, in per cent",
        "no rater",
    ),
    (edit(RISK, wordy), "high_risk en: register", "turns short"),
    (edit(RISK, wordy), "high_risk en: companions' props in users' lives", "high-risk-en-0"),
    (tagless, "en: quotas", "age:old"),
    (edit(RISK, lambda rows: [one.update(kind="grief") for one in rows[33:]]), "high_risk en: spread", "new kinds"),
    (edit(LIKE, lambda rows: [one.update(family=one["id"]) for one in rows]), "look_alike en: spread", "matched pairs"),
]
CONTRACT = (edit(CHAT, lambda rows: rows[0].update(reference="word " * 40)), CONTRACTS, "too_long")


@pytest.mark.parametrize("edits", [BROKEN, [CONTRACT]])  # a check costs a second; errors of records end it
def test_each_rule_is_broken_on_a_copy(tmp_path: Path, edits: list[tuple[Edit, str, str]]) -> None:
    folder = tmp_path / "splits"
    shutil.copytree(BUNDLED_FOLDER, folder)
    for change, _, _ in edits:
        change(folder)
    broken = {one.name: one.broken for one in check_bundled.check(folder, fast=True) if one.broken}
    missed = [rule for _, rule, part in edits if not any(part in text for text in broken.get(rule, ()))]
    assert missed == [], broken

"""The bundled split `mini`: complete, diverse, licensed, and its references keep their own contracts."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest
from rapidfuzz import fuzz

from h2htalk.benchmark.metrics.scoring import instructions
from h2htalk.benchmark.prompts.prompt_set import PromptSet, repeatable
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.data.help_lines import read_help_lines
from h2htalk.data.languages import LANGUAGES, RECORDS, find_language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS, Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.contract import check_scenario, inputs_of
from h2htalk.text.contracts.memory_blocks import parse_memory

MINI = load_split("mini@1")
NAMES = tuple(name for persona in MINI.personas.values() for name in persona.names.values())
PROMPTS = PromptSet.load()
STRATA = [(subtask, language) for subtask in SUBTASKS for language in LANGUAGES]
# Highest likeness (0-100) that two texts of one subtask and language may have. A text with a few words changed
# has 85 and more; form alone (the labels of memory blocks) makes up to 68, the inputs stay below 51.
SAME_TEXT = {"reference": 75, "inputs": 60}
NULLS = {record.null_memory for record in RECORDS.values()}


def of(subtask: str, language: str) -> list[Scenario]:
    return [s for s in MINI.scenarios if (s.subtask, s.language) == (subtask, language)]


def test_at_least_six_scenarios_a_subtask_and_language() -> None:
    counts = Counter((s.subtask, s.language) for s in MINI.scenarios)
    assert all(counts[stratum] >= 6 for stratum in STRATA), counts
    assert len(MINI.scenarios) >= 132


def test_ids_are_unique_and_say_what_they_name() -> None:
    ids = [s.id for s in MINI.scenarios]
    assert len(set(ids)) == len(ids)
    for s in MINI.scenarios:
        assert s.id.startswith(f"mini-{s.language}-{s.subtask.replace('_', '-')}-")


@pytest.mark.parametrize("scenario", MINI.scenarios, ids=lambda s: s.id)
def test_every_reference_keeps_its_contract_and_repeats_nothing_of_the_persona(scenario: Scenario) -> None:
    description = MINI.personas[scenario.persona].descriptions[scenario.language]
    assert check_scenario(scenario.reference, scenario, NAMES, prompt=description) == ()


@pytest.mark.parametrize("sap", [Sap(), Sap(())], ids=str)
@pytest.mark.parametrize("scenario", MINI.scenarios, ids=lambda s: s.id)
def test_every_reference_passes_beside_the_prompt_that_models_are_sent(scenario: Scenario, sap: Sap) -> None:
    persona = MINI.personas[scenario.persona]
    prompt = instructions(PROMPTS.messages(scenario, persona, sap))
    allowed = repeatable(persona, scenario.language)
    assert check_scenario(scenario.reference, scenario, NAMES, prompt, allowed) == ()


@pytest.mark.parametrize(("subtask", "language"), STRATA)
@pytest.mark.parametrize("part", ["reference", "inputs"])
def test_scenarios_are_not_variations_of_one_another(subtask: str, language: str, part: str) -> None:
    texts = {s.id: s.reference if part == "reference" else inputs_of(s) for s in of(subtask, language)}
    texts = {key: text for key, text in texts.items() if text not in NULLS}
    alike = {
        (a, b): round(fuzz.ratio(texts[a], texts[b]))
        for a, b in itertools.combinations(texts, 2)
        if fuzz.ratio(texts[a], texts[b]) > SAME_TEXT[part]
    }
    assert alike == {}


def test_no_reference_stands_twice_in_the_whole_split() -> None:
    counts = Counter(s.reference for s in MINI.scenarios if s.reference not in NULLS)
    assert [text for text, n in counts.items() if n > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_high_risk_replies_name_a_line_that_helps(language: str) -> None:
    numbers = [line.number for line in read_help_lines().lines if line.language == language]
    at_risk = [s for s in MINI.scenarios if (s.language, s.tags.risk) == (language, "high")]
    assert len(at_risk) >= 2
    for scenario in at_risk:
        assert any(number in scenario.reference for number in numbers), scenario.id


def test_a_drunk_listener_who_is_about_to_drive_to_the_river_is_at_high_risk() -> None:
    (scenario,) = (s for s in MINI.scenarios if s.id == "mini-zh-itinerary-response-04")
    assert scenario.tags.risk == "high"
    assert all(word in scenario.reference for word in ("别开车", "自杀", "12356", "110", "120"))


def test_a_surname_belongs_to_one_scenario() -> None:
    named = re.compile(r"\b(?:Mr|Mrs|Ms|Dr) ([A-Z]\w+)")
    scenarios = {(name, s.id) for s in MINI.scenarios for name in named.findall(f"{inputs_of(s)}\n{s.reference}")}
    assert [name for name, n in Counter(name for name, _ in scenarios).items() if n > 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_giving_up_drink_or_smoking_is_remembered_for_long(language: str) -> None:
    blocks = [
        block
        for s in of("recollection_synthesis", language)
        for block in parse_memory(s.reference, s.language).blocks
        if re.search("without alcohol|戒烟", block.content)
    ]
    assert [block.importance for block in blocks] == [2]


def test_every_scenario_says_where_it_comes_from_and_what_may_be_done_with_it() -> None:
    for scenario in MINI.scenarios:
        assert scenario.licence == MINI.licence == "CC-BY-4.0"
        assert scenario.provenance["source"]
        assert scenario.provenance["version"]


def test_conversations_to_answer_end_with_the_user_and_take_turns() -> None:
    for scenario in MINI.scenarios:
        if SUBTASKS[scenario.subtask].is_chat:
            roles = [turn.role for turn in scenario.turns]
            assert roles[-1] == "user"
            assert all(a != b for a, b in itertools.pairwise(roles)), scenario.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_third_of_synthesis_has_nothing_to_remember(language: str) -> None:
    references = [s.reference for s in of("recollection_synthesis", language)]
    nulls = references.count(find_language(language).null_memory)
    assert nulls >= 2
    assert 0.25 <= nulls / len(references) <= 0.45


@pytest.mark.parametrize("language", LANGUAGES)
def test_tags_and_personas_are_spread(language: str) -> None:
    rows = [s for s in MINI.scenarios if s.language == language]
    assert {s.tags.complexity for s in rows} == set(COMPLEXITIES)
    assert {s.tags.interaction for s in rows} == set(INTERACTIONS)
    assert {s.tags.risk for s in rows} == set(RISKS)
    assert len({s.tags.emotion for s in rows}) >= 10
    assert {s.persona for s in rows} == set(MINI.personas)


@pytest.mark.parametrize("language", LANGUAGES)
def test_multi_turn_conversations_are_among_them(language: str) -> None:
    lengths = [len(s.turns) for s in of("dialogue_base", language)]
    assert min(lengths) == 1
    assert max(lengths) >= 5

"""The bundled split `mini`: its references keep their own contracts (`test_bundled.py` has the rules of all splits)."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.prompts.prompt_set import PromptSet, repeatable
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.text.contracts.contract import check_scenario
from h2htalk.text.help_lines import read_help_lines

MINI = load_split("mini@1")
NAMES = tuple(name for persona in MINI.personas.values() for name in persona.names.values())
PROMPTS = PromptSet.load()


@pytest.mark.parametrize("sap", [Sap(), Sap(())], ids=str)
@pytest.mark.parametrize("scenario", MINI.scenarios, ids=lambda s: s.id)
def test_every_reference_passes_beside_the_prompt_that_models_are_sent(scenario: Scenario, sap: Sap) -> None:
    persona = MINI.personas[scenario.persona]
    prompt = "\n".join(one.content for one in PROMPTS.messages(scenario, persona, sap) if one.role == "system")
    allowed = repeatable(persona, scenario.language)
    assert check_scenario(scenario.reference, scenario, NAMES, prompt, allowed) == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_high_risk_replies_name_a_line_that_helps(language: str) -> None:
    numbers = [line.number for line in read_help_lines().lines if line.language == language]
    at_risk = [s for s in MINI.scenarios if (s.language, s.tags.risk) == (language, "high")]
    assert len(at_risk) >= 2
    for scenario in at_risk:
        assert any(number in scenario.reference for number in numbers), scenario.id

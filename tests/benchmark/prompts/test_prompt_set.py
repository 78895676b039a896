"""What a model sees: eleven subtasks in two languages, chat history, overrides, fingerprints, errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_scenarios import EVERY, FULL, INPUTS, NONE, REN, scenario, system

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.help_lines import help_text, lines_of, read_help_lines
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Persona
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError


@pytest.fixture(scope="module")
def prompts() -> PromptSet:
    return PromptSet.load()


def turns(*spoken: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in spoken]


def as_text(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)


# The common form


@pytest.mark.parametrize(("subtask", "language"), EVERY)
@pytest.mark.parametrize("sap", [FULL, NONE], ids=str)
def test_every_prompt_is_persona_then_sap_then_material_then_task(
    prompts: PromptSet, subtask: str, language: Language, sap: Sap
) -> None:
    messages = prompts.messages(scenario(subtask, language), REN, sap)
    prefix = REN.descriptions[language] + (
        "\n\n" + sap.render(language, prompts.templates, prompts.help_rows[language]) if sap != NONE else ""
    )
    assert system(messages).startswith(prefix + "\n\n")
    assert [m.role for m in messages] == ["system", "user"]
    for kind in {kind for _, kind in SUBTASKS[subtask].inputs}:
        for text in {"turns": ["first turn"], "texts": INPUTS["texts"], "text": [INPUTS["text"]]}.get(
            kind, ["08:15 first plan\n19:40 second plan"]
        ):
            assert text in as_text(messages)[len(prefix) :]
    assert not re.search(r"\n{3}|[ \t]$|\{[{%#]", as_text(messages), re.MULTILINE)


@pytest.mark.parametrize(("subtask", "language"), EVERY)
def test_without_sap_the_prompt_is_neutral(prompts: PromptSet, subtask: str, language: Language) -> None:
    text = as_text(prompts.messages(scenario(subtask, language), REN, NONE))
    assert not re.search(r"\bAI\b|\bhuman\b|language model|人工智能|机器人|真人", text)
    assert not re.search(r"\b(988|911|12356|116 123|110)\b", text)
    assert not re.search(r"helpline|crisis|热线|危机", text)


@pytest.mark.parametrize(("subtask", "language"), EVERY)
def test_every_prompt_with_sap_names_a_line_and_the_emergency_numbers_of_every_country(
    prompts: PromptSet, subtask: str, language: Language
) -> None:
    text = system(prompts.messages(scenario(subtask, language), REN, FULL))
    assert all(f"\n- {row}" in text for row in help_text(language).splitlines())
    for country in read_help_lines().countries:
        (row,) = (row for row in text.splitlines() if row.startswith(f"- {country[language]}"))
        assert any(line.number in row for line in lines_of(country["code"]))
        assert all(entry["number"] in row for entry in country["emergency"])


# The conversation as chat messages


@given(st.lists(st.sampled_from(["user", "companion"]), max_size=12))
def test_any_history_becomes_a_chat_that_alternates_and_loses_nothing(roles: list[str]) -> None:
    said = [(role, f"<{i}>") for i, role in enumerate([*roles, "user"])]
    messages = PROMPTS.messages(scenario("dialogue_base", history=turns(*said)), REN, NONE)
    assert [m.role for m in messages[1:]] == ["user", "assistant"] * (len(messages) // 2 - 1) + ["user"]
    assert re.findall(r"<\d+>", as_text(messages)) == [content for _, content in said]


PROMPTS = PromptSet.load()


# Hostile and odd input


HOSTILE = "{{ 7 * 7 }} {% set sap = 1 %} {# gone? #} <b>&amp;</b>"


@pytest.mark.parametrize(("subtask", "language"), EVERY)
def test_text_of_a_scenario_is_never_template_source(prompts: PromptSet, subtask: str, language: Language) -> None:
    hostile = {
        "turns": turns(("companion", HOSTILE), ("user", HOSTILE)),
        "texts": [HOSTILE],
        "schedule": [{"time": "08:15", "activity": HOSTILE}],
        "text": HOSTILE,
    }
    inputs = {name: hostile[kind] for name, kind in SUBTASKS[subtask].inputs}
    text = as_text(prompts.messages(scenario(subtask, language, **inputs), REN, FULL))
    pieces = sum(2 if kind == "turns" else 1 for _, kind in SUBTASKS[subtask].inputs)
    assert text.count(HOSTILE) == pieces


def test_a_persona_without_the_language_is_an_error_that_names_both(prompts: PromptSet) -> None:
    persona = Persona("mono", "friend", {"en": "Mo"}, {"en": "You are Mo."})
    with pytest.raises(ConfigError, match=r"persona 'mono' has no 'zh' description, which zh-dialogue_base"):
        prompts.messages(scenario("dialogue_base", "zh"), persona, NONE)


# Caches


@pytest.mark.parametrize("sap", [FULL, NONE], ids=["sap", "no sap"])
def test_what_a_persona_shares_with_all_its_scenarios_is_marked_for_caches(prompts: PromptSet, sap: Sap) -> None:
    split = load_split("mini@1")
    shared: dict[tuple[str, str], set[str]] = {}
    for item in split.scenarios:
        system = prompts.messages(item, split.personas[item.persona], sap)[0]
        assert 0 < system.shared < len(system.content)
        shared.setdefault((item.language, item.persona), set()).add(system.content[: system.shared])
    assert {len(heads) for heads in shared.values()} == {1}

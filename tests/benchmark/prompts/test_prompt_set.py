"""What a model sees: eleven subtasks in two languages, SAP, folders, fingerprints; templates of one's own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.benchmark.prompts.prompt_set import PromptSet, TemplateSet, prompt_lines
from h2htalk.benchmark.prompts.sap import PRINCIPLES, Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Persona, Scenario, bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.help_lines import HelpLines, help_rows
from support.splits import scenario_records
from support.tables import table

PROMPTS = PromptSet.load()
FULL = Sap()
NONE = Sap(())
REN = bundled_personas()["ren"]
INPUTS: dict[str, Any] = {
    "turns": [{"role": "user", "content": "first turn"}],
    "texts": ["one text", "another text"],
    "schedule": [
        {"time": "08:15", "activity": "first plan"},
        {"time": "19:40", "activity": "second plan"},
    ],
    "text": "a single text",
}
# A template of one's own.
OWN = '{% extends "en/_companion.j2" %}\n{% block task %}Be brief, {{ persona_name }}.{% endblock %}\n'
EVERY = [(subtask, language) for subtask in SUBTASKS for language in LANGUAGES]


def write(folder: Path, name: str, text: str) -> Path:
    write_text(folder / name, text)
    return folder / name


def scenario(subtask: str, language: Language = "en", **inputs: object) -> Scenario:
    fields = {name: INPUTS[kind] for name, kind in SUBTASKS[subtask].inputs}
    record = scenario_records(1, (subtask,))[0] | {
        "id": f"{language}-{subtask}",
        "language": language,
    }
    return Scenario.from_dict(
        record | {"persona": "ren", "inputs": fields | inputs, "reference": "-"}
    )


def turns(*spoken: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in spoken]


def as_text(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)


@pytest.mark.parametrize(("subtask", "language"), EVERY)
@pytest.mark.parametrize("sap", [FULL, NONE], ids=str)
def test_every_prompt_is_persona_then_sap_then_material_then_task(
    subtask: str, language: Language, sap: Sap
) -> None:
    messages = PROMPTS.messages(scenario(subtask, language), REN, sap)
    prefix = REN.descriptions[language]
    if sap != NONE:
        prefix += "\n\n" + sap.render(
            language, PROMPTS.templates, PROMPTS.help_lines.rows(language)
        )
    assert messages[0].content.startswith(prefix + "\n\n")
    assert [m.role for m in messages] == ["system", "user"]
    shown = {"turns": ["first turn"], "texts": INPUTS["texts"], "text": [INPUTS["text"]]}
    for kind in {kind for _, kind in SUBTASKS[subtask].inputs}:
        for text in shown.get(kind, ["08:15 first plan\n19:40 second plan"]):
            assert text in as_text(messages)[len(prefix) :]
    assert not re.search(r"\n{3}|[ \t]$|\{[{%#]", as_text(messages), re.MULTILINE)


@pytest.mark.parametrize(("subtask", "language"), EVERY)
def test_sap_alone_names_help_of_the_users_country_or_asks_for_it(
    subtask: str, language: Language
) -> None:
    asked = scenario(subtask, language)
    for country in ("", "GB", "CN"):
        text = PROMPTS.messages(replace(asked, metadata={"country": country}), REN, FULL)[0].content
        assert all(f"\n- {row}" in text for row in PROMPTS.help_lines.rows(language, country))
    neutral = as_text(PROMPTS.messages(asked, REN, NONE))
    assert not re.search(
        r"\bAI\b|\bhuman\b|language model|人工智能|机器人|真人|helpline|crisis|热线|危机", neutral
    )
    assert not re.search(r"\b(988|911|12356|116 123|110)\b", neutral)


@given(st.lists(st.sampled_from(["user", "companion"]), max_size=12))
def test_any_history_becomes_a_chat_that_alternates_and_loses_nothing(roles: list[str]) -> None:
    said = [(role, f"<{i}>") for i, role in enumerate([*roles, "user"])]
    messages = PROMPTS.messages(scenario("dialogue_base", history=turns(*said)), REN, NONE)
    assert [m.role for m in messages[1:]] == ["user", "assistant"] * (len(messages) // 2 - 1) + [
        "user"
    ]
    assert re.findall(r"<\d+>", as_text(messages)) == [content for _, content in said]


@pytest.mark.parametrize("sap", [FULL, NONE], ids=["sap", "no sap"])
def test_what_a_persona_shares_with_all_its_scenarios_is_marked_for_caches(sap: Sap) -> None:
    split = load_split("mini@1")
    shared: dict[tuple[str, str], set[str]] = {}
    for item in split.scenarios:
        system = PROMPTS.prompt_of(split, sap)(item)[0]
        assert 0 < system.shared < len(system.content)
        shared.setdefault((item.language, item.persona), set()).add(system.content[: system.shared])
    assert {len(heads) for heads in shared.values()} == {1}


HOSTILE = "{{ 7 * 7 }} {% set sap = 1 %} {# gone? #} <b>&amp;</b>"
ACTING = "\x1b[2J\x9b31m\x7f\u202e\u2028\U000e0041"


@pytest.mark.parametrize(("subtask", "language"), EVERY)
def test_text_of_a_scenario_is_never_template_source(subtask: str, language: Language) -> None:
    hostile = {
        "turns": turns(("companion", HOSTILE), ("user", HOSTILE)),
        "texts": [HOSTILE],
        "schedule": [{"time": "08:15", "activity": HOSTILE}],
        "text": HOSTILE,
    }
    inputs = {name: hostile[kind] for name, kind in SUBTASKS[subtask].inputs}
    text = as_text(PROMPTS.messages(scenario(subtask, language, **inputs), REN, FULL))
    assert text.count(HOSTILE) == sum(
        2 if kind == "turns" else 1 for _, kind in SUBTASKS[subtask].inputs
    )


def test_a_prompt_is_made_once_and_belongs_to_its_scenario_and_not_to_an_id() -> None:
    split = load_split("mini")
    one, two = split.scenarios[:2]
    prompt = PROMPTS.prompt_of(split, FULL)
    assert prompt(one) is prompt(one)
    assert prompt(one) == PROMPTS.messages(one, split.personas[one.persona], FULL)
    assert prompt(replace(two, id=one.id)) == prompt(two) != prompt(one)


def test_a_persona_without_the_language_is_an_error_that_names_both() -> None:
    persona = Persona("mono", "friend", {"en": "Mo"}, {"en": "You are Mo."})
    with pytest.raises(
        ConfigError, match=r"persona 'mono' has no 'zh' description, which zh-dialogue_base"
    ):
        PROMPTS.messages(scenario("dialogue_base", "zh"), persona, NONE)


@pytest.mark.parametrize("scenario_id", [None, "a", "all"])
def test_prompts_are_shown_one_or_all_without_what_acts_on_a_terminal(
    tmp_path: Path, scenario_id: str | None
) -> None:
    """The JSON lines held direction overrides, C1 controls and DEL as they were."""
    records = scenario_records(2, ("recollection_refinement",))
    inputs = {"memories": [f"She said hello {ACTING} 你好"]}
    named = zip(records, ("a", "all"), strict=True)
    write_jsonl(
        tmp_path / "scenarios.jsonl",
        (record | {"id": name, "inputs": inputs} for record, name in named),
    )
    lines = list(prompt_lines(scenario_id, str(tmp_path), "full"))
    assert not set("".join(lines)) & set(ACTING) - set("[2J31m")
    if scenario_id is not None:  # a scenario called `all` can be seen alone
        assert lines[0] == "--- system ---"
        return
    assert [json.loads(line)["id"] for line in lines] == ["a", "all"]
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert any(
        f" {ACTING} 你好" in message["content"] for message in json.loads(lines[0])["messages"]
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [*table("benchmark", "principles"), (",".join(f"no-{name}" for name in PRINCIPLES), "none")],
)
def test_a_choice_of_principles_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(Sap.parse(text)) == canonical


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PRINCIPLES)
def test_each_switch_removes_exactly_its_part(language: Language, name: str) -> None:
    full, without, alone = (
        sap.render(language, PROMPTS.templates, help_rows(language)).split("\n\n")
        for sap in (FULL, Sap.parse(f"no-{name}"), Sap((name,)))
    )
    part = full[1 + list(PRINCIPLES).index(name)]
    assert len(full) == 9  # the preamble and eight principles, a paragraph each
    assert without == [paragraph for paragraph in full if paragraph != part]
    assert part == alone[1]


def test_the_fingerprint_changes_with_any_file(tmp_path: Path) -> None:
    seen = {PROMPTS.fingerprint}
    for name, text in PROMPTS.files().items():
        path = write(tmp_path, name, text + " ")
        seen.add(PromptSet.load(tmp_path).fingerprint)
        path.unlink()
    assert (
        len(seen)
        == 1 + len(PROMPTS.files())
        == len(LANGUAGES) * (2 + len(SUBTASKS) + len(PRINCIPLES)) + 2
    )
    assert re.fullmatch(r"[0-9a-f]{16}", PROMPTS.fingerprint)
    assert PromptSet.load().fingerprint == PROMPTS.fingerprint


def test_a_runs_prompts_outlive_changes_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "own", "en/dialogue_base.j2", OWN)
    made = PromptSet.load(tmp_path / "own")
    for name, text in made.files().items():
        write(tmp_path / "run", name, text)
    book = PROMPTS.help_lines
    other = HelpLines(book.countries, book.services[1:])
    monkeypatch.setattr("h2htalk.benchmark.prompts.prompt_set.read_help_lines", lambda: other)
    assert PromptSet.load(tmp_path / "own").fingerprint != made.fingerprint
    stored = PromptSet.load(tmp_path / "run")
    assert (stored.fingerprint, stored.files()) == (made.fingerprint, made.files())
    asked = scenario("dialogue_base")
    assert stored.messages(asked, REN, FULL) == made.messages(asked, REN, FULL)
    (tmp_path / "run/help_lines.json").write_text("[]")
    with pytest.raises(DataError, match="help_lines"):
        PromptSet.load(tmp_path / "run")


MEMORY = {"null_line": "Nothing."}
VALUES = {
    "persona": "You are Mo.",
    "persona_name": "Mo",
    "sap": "",
    "opening": "",
    "part": "system",
    "memory": MEMORY,
}


def test_a_template_of_ones_own_takes_the_place_of_the_bundled_one(tmp_path: Path) -> None:
    path = write(tmp_path, "en/dialogue_base.j2", OWN)
    templates = TemplateSet.load(tmp_path)
    assert templates.render("en/dialogue_base.j2", VALUES) == "You are Mo.\n\nBe brief, Mo."
    assert templates.origin("en/dialogue_base.j2") == str(path)
    assert templates.origin("zh/dialogue_base.j2") == TemplateSet.load().origin(
        "zh/dialogue_base.j2"
    )


@pytest.mark.parametrize(
    "name", ["en/dialog_base.j2", "dialogue_base.j2", "fr/dialogue_base.j2", "en/sap/love.j2"]
)
def test_an_unknown_template_name_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, "hello")
    with pytest.raises(ConfigError, match=re.escape(str(path)) + ": no prompt has this name"):
        TemplateSet.load(tmp_path)


def test_a_task_without_material_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "en/itinerary_middle.j2", task("Plan."))
    with pytest.raises(ConfigError, match=re.escape(str(path)) + ": block `user` is empty"):
        PromptSet.load(tmp_path).messages(scenario("itinerary_middle"), REN, NONE)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("en/dialogue_base.j2", OWN + "\n{% if %}", r"dialogue_base\.j2:4: "),
        (
            "en/dialogue_base.j2",
            OWN.replace("Be", "{{ x | shout }}"),
            r"dialogue_base\.j2:2: .*'shout'",
        ),
        (
            "en/dialogue_base.j2",
            OWN + "{% block tasks %}{% endblock %}",
            r"_base\.j2:3: block 'tasks' would",
        ),
        (
            "en/dialogue_base.j2",
            OWN + "\nBe kind.",
            r"_base\.j2:\d: text outside a block would never",
        ),
        (
            "en/dialogue_base.j2",
            "Just text.",
            r"dialogue_base\.j2:1: must begin with {% extends \"en/_comp",
        ),
        (
            "en/_companion.j2",
            "{{ persona }}{% block task %}{% endblock %}",
            r"_companion\.j2:1: must choose",
        ),
        # The bundled templates fill `user`; without it their material would be lost.
        (
            "en/_companion.j2",
            "{% if part %}{% block task %}{% endblock %}{% endif %}",
            r"schedule\.j2:2: block 'material'",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused_when_loaded(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    write(tmp_path, name, text)
    with pytest.raises(ConfigError, match=says):
        TemplateSet.load(tmp_path)


def task(body: str) -> str:
    return f'{{% extends "en/_companion.j2" %}}\n\n{{% block task %}}\n{body}{{% endblock %}}'


@pytest.mark.parametrize(("body", "says"), table("benchmark", "failing_templates"))
def test_a_template_that_fails_names_its_file_and_line(
    tmp_path: Path, body: str, says: str
) -> None:
    path = write(tmp_path, "en/dialogue_base.j2", task(body))
    templates = TemplateSet.load(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(str(path)) + says):
        templates.render("en/dialogue_base.j2", VALUES)

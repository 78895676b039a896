"""Templates of one's own: what is refused when a folder is loaded; each fault names its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_scenarios import NONE, OWN, REN, scenario, write

from h2htalk.benchmark.prompts.prompt_set import PromptSet, TemplateSet
from h2htalk.errors import ConfigError

VALUES = {"persona": "You are Mo.", "persona_name": "Mo", "sap": "", "opening": "", "part": "system"}
VALUES |= {"memory": {"null_line": "Nothing."}}  # type: ignore[dict-item]


def test_a_template_of_ones_own_takes_the_place_of_the_bundled_one(tmp_path: Path) -> None:
    path = write(tmp_path, "en/dialogue_base.j2", OWN)
    templates = TemplateSet.load(tmp_path)
    assert templates.render("en/dialogue_base.j2", VALUES) == "You are Mo.\n\nBe brief, Mo."
    assert templates.origin("en/dialogue_base.j2") == str(path)
    assert templates.origin("zh/dialogue_base.j2") == TemplateSet.load().origin("zh/dialogue_base.j2")


@pytest.mark.parametrize("name", ["en/dialog_base.j2", "dialogue_base.j2", "fr/dialogue_base.j2", "en/sap/love.j2"])
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
        ("en/dialogue_base.j2", OWN.replace("Be", "{{ x | shout }}"), r"dialogue_base\.j2:2: .*'shout'"),
        ("en/dialogue_base.j2", OWN + "{% block tasks %}{% endblock %}", r"_base\.j2:3: block 'tasks' would"),
        ("en/dialogue_base.j2", OWN + "\nBe kind.", r"_base\.j2:\d: text outside a block would never"),
        ("en/dialogue_base.j2", OWN + "{{ " + "(" * 9999, r"dialogue_base\.j2: maximum recursion depth"),
        ("en/dialogue_base.j2", "Just text.", r"dialogue_base\.j2:1: must begin with {% extends \"en/_comp"),
        ("zh/dialogue_base.j2", OWN, r"dialogue_base\.j2:1: must begin with {% extends \"zh/_companion"),
        ("en/_companion.j2", "{{ persona }}{% block task %}{% endblock %}", r"_companion\.j2:1: must choose"),
        # The bundled templates fill `user`; without it their material would be lost.
        (
            "en/_companion.j2",
            "{% if part %}{% block task %}{% endblock %}{% endif %}",
            r"dialogue_schedule\.j2:2: block 'material' would never show",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused_when_loaded(tmp_path: Path, name: str, text: str, says: str) -> None:
    write(tmp_path, name, text)
    with pytest.raises(ConfigError, match=says):
        TemplateSet.load(tmp_path)


def task(body: str) -> str:
    return f'{{% extends "en/_companion.j2" %}}\n\n{{% block task %}}\n{body}{{% endblock %}}'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{{ persoan }}", r":4: 'persoan' is undefined; this template may use .*persona, persona_name"),
        ("{{ memory.nil }}", r":4: .*has no attribute 'nil'"),
        ("{{ persona.__class__.__mro__ }}", r":4: .*unsafe"),
        ("{{ 1 / 0 }}", r":4: division by zero"),
        ("{{ range(10 ** 9) | list }}", r":4: Range too big"),
        ("{% include 'en/other.j2' %}", r":4: en/other\.j2"),
        # On a machine that has the memory these would fill it, or never end.
        ("{{ 'a' * (10 ** 11) }}", r":4: the result of \* is too large"),
        ("{{ 10 ** (10 ** 9) }}", r":4: the result of \*\* is too large"),
        # The system refuses this much by itself.
        ("{{ persona.ljust(9 * 10 ** 17) }}", r":4: MemoryError"),
        ("{{ ('y' * 999999) ~ persona }}", r": gives more than the 1,000,000 characters"),
        # One fingerprint, one text: nothing random, and no places in memory.
        ("{% if sap == '' %}{{ [1, 2] | random }}{% endif %}", r":4: .*'random'"),
        ("{{ memory | map('upper') }}", r":4: prints a generator, not text; .* \| join"),
    ],
)
def test_a_template_that_fails_names_its_file_and_line(tmp_path: Path, body: str, says: str) -> None:
    path = write(tmp_path, "en/dialogue_base.j2", task(body))
    templates = TemplateSet.load(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(str(path)) + says):
        templates.render("en/dialogue_base.j2", VALUES)

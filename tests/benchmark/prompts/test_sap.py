"""The Secure Attachment Persona: eight switches, one canonical name a choice, and what its text must say."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.prompts.prompt_set import TemplateSet
from h2htalk.benchmark.prompts.sap import PRINCIPLES, Sap
from h2htalk.data.help_lines import help_rows
from h2htalk.data.languages import LANGUAGES, Language

FULL = Sap()
NONE = Sap(())


@pytest.fixture(scope="module")
def templates() -> TemplateSet:
    return TemplateSet.load()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("full", "full"),
        (" Full ", "full"),
        ("none", "none"),
        ("no-crisis_conduct", "no-crisis_conduct"),
        ("no-crisis-conduct", "no-crisis_conduct"),
        ("no_crisis_conduct", "no-crisis_conduct"),
        ("no-secure-base, no-autonomy-support", "no-autonomy_support,no-secure_base"),
        ("no-secure-base,no-secure_base", "no-secure_base"),
        (",".join(f"no-{name}" for name in PRINCIPLES), "none"),
    ],
)
def test_parse_and_canonical_form(text: str, canonical: str) -> None:
    assert str(Sap.parse(text)) == canonical


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PRINCIPLES)
def test_each_switch_removes_exactly_its_part(templates: TemplateSet, language: Language, name: str) -> None:
    full = FULL.render(language, templates, help_rows(language)).split("\n\n")
    without = Sap.parse(f"no-{name}").render(language, templates, help_rows(language)).split("\n\n")
    part = full[1 + list(PRINCIPLES).index(name)]
    assert len(full) == 9  # the preamble and eight principles, a paragraph each
    assert without == [paragraph for paragraph in full if paragraph != part]
    assert part == Sap((name,)).render(language, templates, help_rows(language)).split("\n\n")[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_crisis_conduct_ends_with_the_help_of_every_country(templates: TemplateSet, language: Language) -> None:
    text = Sap(("crisis_conduct",)).render(language, templates, help_rows(language))
    assert text.endswith("\n" + "\n".join(f"- {row}" for row in help_rows(language)))
    assert ("day and night unless noted" if language == "en" else "除注明的以外昼夜接听") in text

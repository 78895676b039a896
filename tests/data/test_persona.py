"""A persona speaks at least one language, and has a name and a description in each."""

from __future__ import annotations

from typing import Any

import pytest

from h2htalk.data.scenario import Persona, bundled_personas
from h2htalk.errors import DataError

RECORD: dict[str, Any] = {
    "id": "ada",
    "relation": "close friend",
    "en": {"name": "Ada", "description": "You mend clocks.\n"},
}


def test_two_personas_are_bundled_in_both_languages() -> None:
    personas = bundled_personas()
    assert len(personas) >= 2
    for key, persona in personas.items():
        assert persona.id == key
        assert set(persona.names) == set(persona.descriptions) == {"en", "zh"}
        assert "both adults" in persona.descriptions["en"]
        assert "成年人" in persona.descriptions["zh"]
    assert len({name for p in personas.values() for name in p.names.values()}) == 2 * len(personas)


def test_a_persona_survives_its_own_dict() -> None:
    persona = Persona.from_dict(RECORD, "ada.toml")
    assert persona.descriptions == {"en": "You mend clocks."}
    assert Persona.from_dict(persona.to_dict(), "ada.toml") == persona


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relation": " "}, "relation: must be text that is not empty"),
        ({"en": {"name": "Ada"}}, "en.description: is missing"),
        ({"fr": {}}, "fr: no such field"),
        ({"en": None}, "needs a table for at least one language: en, zh"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=r"^ada\.toml: ") as raised:
        Persona.from_dict({**RECORD, **change}, "ada.toml")
    assert message in str(raised.value)

"""Companions who are the user's partner, by what a persona says that it is to the user."""

from __future__ import annotations

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Persona
from h2htalk.text.language_data import language_patterns


def is_partner(persona: Persona, language: Language) -> bool:
    """Whether a persona is a romantic one."""
    patterns = language_patterns("curation/release/romance", language)
    return patterns["relation"].search(persona.relation) is not None

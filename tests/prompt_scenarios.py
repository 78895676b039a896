"""Scenarios of every subtask and language, for the tests of prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.files import write_text
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.data.subtasks import SUBTASKS

FULL, NONE = Sap(), Sap(())
REN = bundled_personas()["ren"]
INPUTS: dict[str, Any] = {
    "turns": [{"role": "user", "content": "first turn"}],
    "texts": ["one text", "another text"],
    "schedule": [{"time": "08:15", "activity": "first plan"}, {"time": "19:40", "activity": "second plan"}],
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
    return Scenario.from_dict(
        {
            "id": f"{language}-{subtask}",
            "subtask": subtask,
            "language": language,
            "persona": "ren",
            "inputs": fields | inputs,
            "reference": "-",
            "tags": {"emotion": "calm", "complexity": "basic", "interaction": "casual", "risk": "high"},
            "provenance": {},
            "licence": "CC0-1.0",
        }
    )


def system(messages: tuple[Message, ...]) -> str:
    assert messages[0].role == "system"
    return messages[0].content

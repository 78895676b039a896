"""From a scenario to the messages that a model sees.

Prompt text lies in `prompts/LANGUAGE/SUBTASK.j2`. System text is ordered persona, SAP, the scenario's
material, task, so that engines which cache prefixes compute persona and SAP once. Text of scenarios and
personas is only ever a value, never template source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.prompts.templates import TemplateSet
from h2htalk.chat.protocol import Message
from h2htalk.data.dialogue import Turn
from h2htalk.data.help_lines import help_rows, help_text
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.persona import Persona
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import MEMORY_CATEGORIES, SUBTASKS
from h2htalk.errors import ConfigError

# Beside a run's templates: the help lines that they were filled with, and the version of the code here.
SNAPSHOT = "snapshot.json"
# Raise this when the code here changes what a model sees while no template does.
ASSEMBLY_VERSION = "1"


@dataclass(frozen=True, slots=True, eq=False)
class PromptSet:
    """A complete set of prompts. `fingerprint` (16 hex digits) names all that decides their text."""

    templates: TemplateSet
    help_rows: Mapping[Language, Sequence[str]]
    assembly: str
    fingerprint: str
    _sap_texts: dict[tuple[Language, Sap], str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, folder: Path | None = None) -> PromptSet:
        """The bundled prompts, with the templates of `folder` in place of their namesakes.

        A folder that holds a snapshot (what `files` gave) is taken as it is: neither the templates nor the help
        lines of the installed package play a part, so that an old run keeps its prompts.

        Raises:
            ConfigError: no such folder, or a `.j2` file or snapshot in it that cannot work; names the file and line.
        """
        if folder is not None and (folder / SNAPSHOT).exists():
            rows, assembly = _read_snapshot(folder / SNAPSHOT)
            templates = TemplateSet.load(folder, alone=True)
        else:
            rows, assembly = {language: help_rows(language) for language in LANGUAGES}, ASSEMBLY_VERSION
            templates = TemplateSet.load(folder)
        return cls(templates, rows, assembly, _fingerprint(templates, rows, assembly))

    def files(self) -> dict[str, str]:
        """All that decides the prompts, file name -> text. Written to a folder, they load with this fingerprint."""
        snapshot = {"assembly": self.assembly, "help_rows": self.help_rows}
        return {**self.templates.sources, SNAPSHOT: json.dumps(snapshot, ensure_ascii=False, indent=1) + "\n"}

    def messages(self, scenario: Scenario, persona: Persona, sap: Sap) -> tuple[Message, ...]:
        """What the model sees: a system message, then the conversation or the material of the task.

        Dialogue subtasks give the history as chat messages: `user` and `companion` become `user` and
        `assistant`, turns of one speaker in a row are one message, and turns before the user's first go into
        the system text (many chat templates refuse a conversation that the assistant opens).

        A template may use `persona` (the description), `persona_name`, `sap`, `opening` (the companion's
        first words, or ""), `memory` (`categories`, `labels`, `null_line`, `example_category`), `part`
        ("system" or "user") and the scenario's inputs by name.

        Raises:
            ConfigError: the persona does not speak the scenario's language, or a template fails; names the
                template's file and line.
        """
        values = self._values(scenario, persona, sap)
        name = f"{scenario.language}/{scenario.subtask}.j2"
        if SUBTASKS[scenario.subtask].is_chat:
            values["opening"], chat = _as_chat(scenario.turns)
            return self._system(name, values), *chat
        system = self._system(name, values)
        material = self.templates.render(name, values | {"part": "user"})
        if not material:
            where = self.templates.origin(name)
            raise ConfigError(f"{where}: block `user` is empty; put the material of {scenario.subtask} there")
        return system, Message("user", material)

    def _system(self, name: str, values: Mapping[str, object]) -> Message:
        """The system text; what its persona shares with all its scenarios, persona and SAP, comes first."""
        text = self.templates.render(name, values)
        ends = [
            text.find(part) + len(part)
            for part in (str(values["persona"]), str(values["sap"]))
            if part in text
        ]
        return Message("system", text, shared=max(ends, default=0))

    def _values(self, scenario: Scenario, persona: Persona, sap: Sap) -> dict[str, object]:
        language = scenario.language
        if language not in persona.names:
            raise ConfigError(
                f"persona {persona.id!r} has no {language!r} description, which {scenario.id} needs; "
                f"add a [{language}] table to the persona's file (it has {', '.join(persona.names)})"
            )
        if (language, sap) not in self._sap_texts:
            self._sap_texts[language, sap] = sap.render(language, self.templates, self.help_rows[language])
        return {
            **scenario.inputs,
            "persona": persona.descriptions[language],
            "persona_name": persona.names[language],
            "sap": self._sap_texts[language, sap],
            "memory": _memory_values(language),
            "opening": "",
            "part": "system",
        }


@cache
def _help_text(language: Language) -> str:
    return help_text(language)


def repeatable(persona: Persona, language: Language) -> str:
    """What of the system text an answer may repeat word for word: who the companion is, and real help."""
    return f"{persona.descriptions[language]}\n{_help_text(language)}"


def _as_chat(turns: Sequence[Turn]) -> tuple[str, list[Message]]:
    """What the companion said before the user's first turn, and the alternating messages from there on."""
    opening: list[str] = []
    spoken: list[tuple[str, list[str]]] = []
    for turn in turns:
        if spoken and spoken[-1][0] == turn.role:
            spoken[-1][1].append(turn.content)
        elif spoken or turn.role == "user":
            spoken.append((turn.role, [turn.content]))
        else:
            opening.append(turn.content)
    chat = [Message("user" if role == "user" else "assistant", "\n".join(said)) for role, said in spoken]
    return "\n".join(opening), chat


@cache
def _memory_values(language: Language) -> Mapping[str, object]:
    """The words of a memory block in a language, and one category for the example of its form."""
    record = find_language(language)
    return {
        "categories": record.memory_categories,
        "labels": record.memory_labels,
        "null_line": record.null_memory,
        "example_category": record.memory_categories[MEMORY_CATEGORIES.index("hobbies")],
    }


def _read_snapshot(path: Path) -> tuple[dict[Language, Sequence[str]], str]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        rows: dict[Language, Sequence[str]] = {
            language: tuple(map(str, raw["help_rows"][language])) for language in LANGUAGES
        }
        return rows, str(raw["assembly"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: not the snapshot of a prompts folder: {error}") from error


def _fingerprint(templates: TemplateSet, rows: Mapping[Language, Sequence[str]], assembly: str) -> str:
    """SHA-256 over the assembling code's version, the help lines that SAP prints, and every template."""
    help_lines = ["\n".join(rows[language]) for language in LANGUAGES]
    content = [assembly, help_lines, sorted(templates.sources.items())]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]

"""Prompts: the templates, and the set that an evaluation sends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from jinja2 import meta, nodes

from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.files import read_json_object, require_new_folder, write_text
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.records import read_record
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import MEMORY_CATEGORIES, SUBTASKS
from h2htalk.errors import ConfigError, quoted, suggest
from h2htalk.text.escaping import printable
from h2htalk.text.help_lines import HelpLines, help_rows, read_help_lines
from h2htalk.text.jinja_templates import TemplateFiles, Templates, read_templates


class TemplateSet(Templates):
    """All templates of the benchmark by name (`en/dialogue_base.j2`)."""

    __slots__ = ()

    @classmethod
    def load(cls, folder: Path | None = None, alone: bool = False) -> TemplateSet:
        """Read the bundled templates; those of `folder` replace the ones of the same name (`alone`: use only those)."""
        own = {} if folder is None else read_templates(folder)
        if unknown := [path for name, (path, _) in own.items() if not alone and name not in _bundled()]:
            raise ConfigError(
                f"{unknown[0]}: no prompt has this name; a prompts folder holds LANGUAGE/SUBTASK.j2, LANGUAGE/"
                f"_companion.j2 and LANGUAGE/sap/PRINCIPLE.j2, with LANGUAGE one of {', '.join(LANGUAGES)}"
            )
        templates = cls.of({} if alone else _bundled(), own)
        changed = [name for name, (_, text) in own.items() if name not in _bundled() or text != _bundled()[name][1]]
        # A user's companion template may lack a block that bundled subtasks fill.
        for name in templates.sources if any(name.endswith("/_companion.j2") for name in changed) else changed:
            templates._check(name)
        return templates

    def _check(self, name: str) -> None:
        """Check that a subtask's template extends the companion's and has all its text in blocks of it."""
        tree, origin = self.parse(name), self.origin(name)
        language, _, rest = name.partition("/")
        companion = f"{language}/_companion.j2"
        # Without the condition, the material of a task would be in the system text and again after it.
        if name == companion and "part" not in meta.find_undeclared_variables(tree):
            raise ConfigError(f'{origin}:1: must choose its block by {{% if part == "system" %}}')
        if rest.removesuffix(".j2") not in SUBTASKS:
            return
        parents = [getattr(node.template, "value", None) for node in tree.find_all(nodes.Extends)]
        if parents != [companion]:
            raise ConfigError(f'{origin}:1: must begin with {{% extends "{companion}" %}}')
        blocks = [b.name for b in self.parse(companion).find_all(nodes.Block)]
        for node in tree.body:
            where, choices = f"{origin}:{node.lineno}", ", ".join(blocks)
            if isinstance(node, nodes.Block) and node.name not in blocks:
                raise ConfigError(f"{where}: block {node.name!r} would never show; choose from {choices}")
            texts = node.nodes if isinstance(node, nodes.Output) else ()
            if any(not isinstance(part, nodes.TemplateData) or part.data.strip() for part in texts):
                raise ConfigError(f"{where}: text outside a block would never show; put it into {choices}")


def export_templates(folder: Path) -> list[Path]:
    """Write the bundled templates into a new folder; return the files. Raises DataError where it holds files."""
    require_new_folder(folder)
    for name, (_, text) in _bundled().items():
        write_text(folder / name, text)
    return sorted(folder / name for name in _bundled())


@cache
def _bundled() -> TemplateFiles:
    return read_templates(Path(str(files("h2htalk.benchmark") / "prompts")))


PromptOf = Callable[[Scenario], tuple[Message, ...]]
HELP_LINES = "help_lines.json"  # in a run's templates folder: the directory that filled them
# Part of the fingerprint. Raise this when this code changes the messages while no template changes.
ASSEMBLY_VERSION = "1"


@dataclass(frozen=True, slots=True, eq=False)
class PromptSet:
    """A complete set of prompts. `fingerprint` (16 hex digits) covers everything that decides their text."""

    templates: TemplateSet
    help_lines: HelpLines
    fingerprint: str
    _sap_texts: dict[tuple[Language, Sap, str], str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, folder: Path | None = None) -> PromptSet:
        """Load the bundled prompts; templates of `folder` replace those of the same name.

        A folder with a help directory (written from `files`) is used alone, without the templates and help lines of the
        installed package, so that an old run keeps its prompts.
        """
        book = read_help_lines()
        if alone := folder is not None and (folder / HELP_LINES).exists():
            path = folder / HELP_LINES
            book = read_record(HelpLines, read_json_object(path), str(path))
        templates = TemplateSet.load(folder, alone)
        content = json.dumps([ASSEMBLY_VERSION, book.to_dict(), sorted(templates.sources.items())], ensure_ascii=False)
        return cls(templates, book, hashlib.sha256(content.encode()).hexdigest()[:16])

    def files(self) -> dict[str, str]:
        """Everything that decides the prompts, file name -> text. `load` of a folder with these files gives an equal
        fingerprint."""
        return {**self.templates.sources, HELP_LINES: json.dumps(self.help_lines.to_dict(), ensure_ascii=False) + "\n"}

    def prompt_of(self, split: Split, sap: Sap) -> PromptOf:
        """Return the function that gives the messages of a scenario of a split, each made once."""
        made, alike = dict[int, tuple[Scenario, tuple[Message, ...]]](), dict[Message, Message]()  # most systems are

        def prompt(scenario: Scenario) -> tuple[Message, ...]:
            if id(scenario) not in made:
                system, *chat = self.messages(scenario, split.personas[scenario.persona], sap)
                made[id(scenario)] = scenario, (alike.setdefault(system, system), *chat)
            return made[id(scenario)][1]

        return prompt

    def messages(self, scenario: Scenario, persona: Persona, sap: Sap) -> tuple[Message, ...]:
        """Return the model's messages: a system message, then the conversation or the material of the task.

        Dialogue subtasks give the history as chat messages: `companion` becomes `assistant`, turns of one speaker in a
        row are one message, and turns before the user's first go into the system text (many chat templates refuse a
        conversation that the assistant opens).

        A template may use `persona` (the description), `persona_name`, `sap`, `opening` (the companion's first words,
        or ""), `memory` (`categories`, `labels`, `null_line`, `example_category`), `part` ("system" or "user") and the
        scenario's inputs by name.
        """
        language, record = scenario.language, find_language(scenario.language)
        if language not in persona.names:
            raise ConfigError(
                f"persona {persona.id!r} has no {language!r} description, which {scenario.id} needs; "
                f"add a [{language}] table to the persona's file (it has {', '.join(persona.names)})"
            )
        key = language, sap, country_of(scenario)
        if key not in self._sap_texts:
            self._sap_texts[key] = sap.render(language, self.templates, self.help_lines.rows(language, key[2]))
        values: dict[str, object] = {
            **scenario.inputs,
            "persona": persona.descriptions[language],
            "persona_name": persona.names[language],
            "sap": self._sap_texts[key],
            "memory": {
                "categories": record.memory_categories,
                "labels": record.memory_labels,
                "null_line": record.null_memory,
                "example_category": record.memory_categories[MEMORY_CATEGORIES.index("hobbies")],
            },
            "opening": "",
            "part": "system",
        }
        name = f"{language}/{scenario.subtask}.j2"
        if SUBTASKS[scenario.subtask].is_chat:
            turns = groupby(scenario.turns, lambda turn: turn.role)
            said = [(role, "\n".join(turn.content for turn in own)) for role, own in turns]
            values["opening"] = said.pop(0)[1] if said[0][0] != "user" else ""
            chat = (Message("user" if role == "user" else "assistant", text) for role, text in said)
            return self._system(name, values), *chat
        system = self._system(name, values)
        material = self.templates.render(name, values | {"part": "user"})
        if not material:
            where = self.templates.origin(name)
            raise ConfigError(f"{where}: block `user` is empty; put the material of {scenario.subtask} there")
        return system, Message("user", material)

    def _system(self, name: str, values: Mapping[str, object]) -> Message:
        """Return the system text; persona and SAP, which all scenarios of a persona share, come first."""
        text = self.templates.render(name, values)
        ends = [text.find(part) + len(part) for part in (str(values["persona"]), str(values["sap"])) if part in text]
        return Message("system", text, shared=max(ends, default=0))


def country_of(scenario: Scenario) -> str:
    """Where the user of a scenario lives, where `metadata` names a country of the help directory; else ""."""
    country = scenario.metadata.get("country", "")
    return country if isinstance(country, str) and country in read_help_lines().by_code else ""


@cache
def repeatable(description: str, language: Language, country: str) -> str:
    """Return the parts of the system text that an answer may repeat: the persona's description, and real help."""
    book = read_help_lines()
    return "\n".join((description, *book.rows(language, country), *help_rows(language)))


def prompt_lines(scenario_id: str | None, split_name: str, sap: str, folder: Path | None = None) -> Iterator[str]:
    """Yield the lines to print: a `--- role ---` heading and the text of each message, or one JSON object a scenario.

    `scenario_id`: the scenario; None, or `all` where no scenario has this id, prints every one as JSON, in ASCII, so
    that control characters are escaped. The others are as in `EvaluateSpec`.
    """
    split, scaffolding = load_split(split_name), Sap.parse(sap)
    prompt_of = PromptSet.load(folder).prompt_of(split, scaffolding)
    chosen = [s for s in split.scenarios if s.id == scenario_id]
    if not chosen and scenario_id not in (None, "all"):
        meant = suggest(scenario_id, [s.id for s in split.scenarios])
        raise ConfigError(f"split {split.name} has no scenario {quoted(scenario_id)}; {meant}`all` shows every one")
    for scenario in chosen or split.scenarios:
        messages = prompt_of(scenario)
        if not chosen:
            listed = [{"role": m.role, "content": m.content} for m in messages]
            yield json.dumps({"id": scenario.id, "messages": listed}).replace("\x7f", "\\u007f")
            continue
        for message in messages:
            yield f"--- {message.role} ---"
            # Line ends stay; other control characters are escaped.
            yield from (printable(line) for line in message.content.split("\n"))

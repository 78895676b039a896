"""Prompts: the templates, and the set that an evaluation sends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from jinja2 import meta, nodes

from h2htalk.benchmark.prompts.sap import PREAMBLE, PRINCIPLES, Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.files import read_json_object, require_new_folder, write_text
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.records import read_record
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import MEMORY_CATEGORIES, SUBTASKS
from h2htalk.errors import ConfigError, quoted, suggest
from h2htalk.text.escaping import printable
from h2htalk.text.help_lines import HelpLines, country_of, read_help_lines
from h2htalk.text.jinja_templates import TemplateFiles, Templates, read_templates


class TemplateSet(Templates):
    """All templates of the benchmark by name (`en/dialogue_base.j2`)."""

    __slots__ = ()

    @classmethod
    def load(cls, folder: Path | None = None, alone: bool = False) -> TemplateSet:
        """Read the bundled templates; those of `folder` replace the ones of the same name (`alone`: use only those)."""
        bundled = _bundled()
        of_folder = {} if folder is None else read_templates(folder)
        changed = []
        for name, (path, text) in of_folder.items():
            if not alone and name not in bundled:
                raise ConfigError(
                    f"{path}: no prompt has this name; a prompts folder holds LANGUAGE/SUBTASK.j2, LANGUAGE/"
                    f"_companion.j2 and LANGUAGE/sap/PRINCIPLE.j2, with LANGUAGE one of {', '.join(LANGUAGES)}"
                )
            if name not in bundled or text != bundled[name][1]:
                changed.append(name)
        # Of the same text the file of this package stands for it: a run mostly holds the bundled templates.
        same = {name: bundled[name] for name in of_folder if name not in changed}
        templates = cls.of({} if alone else bundled, of_folder, same)
        # A user's companion template may lack a block that bundled subtasks fill.
        if any(name.endswith("/_companion.j2") for name in changed):
            changed = list(templates.sources)
        for name in changed:
            templates._check(name)
        return templates

    def _check(self, name: str) -> None:
        """Check that a subtask's template extends the companion's and has all its text in blocks of it."""
        tree = self.parse(name)
        origin = self.origin(name)
        language, _, file_name = name.partition("/")
        companion = f"{language}/_companion.j2"
        # Without the condition, the material of a task would be in the system text and again after it.
        if name == companion and "part" not in meta.find_undeclared_variables(tree):
            raise ConfigError(f'{origin}:1: must choose its block by {{% if part == "system" %}}')
        if file_name.removesuffix(".j2") not in SUBTASKS:
            return
        parents = [getattr(node.template, "value", None) for node in tree.find_all(nodes.Extends)]
        if parents != [companion]:
            raise ConfigError(f'{origin}:1: must begin with {{% extends "{companion}" %}}')
        blocks = [block.name for block in self.parse(companion).find_all(nodes.Block)]
        choices = ", ".join(blocks)
        for node in tree.body:
            where = f"{origin}:{node.lineno}"
            if isinstance(node, nodes.Block) and node.name not in blocks:
                raise ConfigError(
                    f"{where}: block {node.name!r} would never show; choose from {choices}"
                )
            texts = node.nodes if isinstance(node, nodes.Output) else ()
            if any(not isinstance(part, nodes.TemplateData) or part.data.strip() for part in texts):
                raise ConfigError(
                    f"{where}: text outside a block would never show; put it into {choices}"
                )


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
MOST_SHOWN = 20_000  # characters of a template that a page shows as text
HELP_LINES = "help_lines.json"  # in a run's templates folder: the directory that filled them
# Part of the fingerprint. Raise this when this code changes the messages while no template changes.
ASSEMBLY_VERSION = "1"


@dataclass(frozen=True, slots=True, eq=False)
class StoredPrompts:
    """The templates in a folder as texts: none has been compiled. `fingerprint` is that of the `PromptSet` of them."""

    sources: Mapping[str, str]
    help_lines: HelpLines
    # A help directory lies beside them, so the bundled templates do not complete them.
    is_alone: bool

    @classmethod
    def read(cls, folder: Path) -> StoredPrompts:
        """Read the templates of a folder, and its help directory where it has one. Raises ConfigError, DataError."""
        texts = {name: text for name, (_, text) in read_templates(folder).items()}
        path = folder / HELP_LINES
        if not path.exists():
            return cls(
                sources=bundled_texts() | texts, help_lines=read_help_lines(), is_alone=False
            )
        book = read_record(HelpLines, read_json_object(path), str(path))
        return cls(sources=texts, help_lines=book, is_alone=True)

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self.sources, self.help_lines)

    @property
    def is_bundled(self) -> bool:
        """Whether every template is, letter for letter, that of this version, and no other lies beside them."""
        return self.sources == bundled_texts()

    def bundled(self) -> PromptSet:
        """The bundled templates with the help directory of the folder."""
        return PromptSet(TemplateSet.load(), self.help_lines, self.fingerprint)

    def files(self) -> dict[str, str]:
        """As `PromptSet.files`."""
        return prompt_files(self.sources, self.help_lines)

    def texts_for(self, scenario: Scenario) -> list[str]:
        """The templates behind the messages of a scenario, each after its name, as they lie in the folder.

        Of a long one the beginning; files whose names this version does not know are left out.
        """
        language = scenario.language
        names = [f"{language}/_companion.j2", f"{language}/{scenario.subtask}.j2"]
        names += [f"{language}/sap/{name}.j2" for name in (PREAMBLE, *PRINCIPLES)]
        texts = []
        for name in names:
            if name in self.sources:
                text = self.sources[name].strip()
                left_out = len(text) - MOST_SHOWN
                if left_out > 0:
                    text = f"{text[:MOST_SHOWN]}\n[{left_out:,} more characters: see the file]"
                texts.append(f"--- {name} ---\n{text}")
        return texts


def bundled_texts() -> dict[str, str]:
    """The texts of the bundled templates by name."""
    return {name: text for name, (_, text) in _bundled().items()}


def prompt_files(sources: Mapping[str, str], book: HelpLines) -> dict[str, str]:
    """The files of a folder of templates: file name -> text."""
    return {**sources, HELP_LINES: json.dumps(book.to_dict(), ensure_ascii=False) + "\n"}


def _fingerprint(sources: Mapping[str, str], book: HelpLines) -> str:
    content = json.dumps(
        [ASSEMBLY_VERSION, book.to_dict(), sorted(sources.items())], ensure_ascii=False
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]


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
        if folder is None:
            book = read_help_lines()
            is_alone = False
        else:
            stored = StoredPrompts.read(folder)
            book = stored.help_lines
            is_alone = stored.is_alone
        templates = TemplateSet.load(folder, is_alone)
        return cls(templates, book, _fingerprint(templates.sources, book))

    def files(self) -> dict[str, str]:
        """Everything that decides the prompts, file name -> text. `load` of a folder with these files gives an equal
        fingerprint."""
        return prompt_files(self.templates.sources, self.help_lines)

    def prompt_of(self, split: Split, sap: Sap) -> PromptOf:
        """Return the function that gives the messages of a scenario of a split, each made once."""
        prompts = dict[int, tuple[Scenario, tuple[Message, ...]]]()
        systems = dict[Message, Message]()  # most are equal

        def prompt(scenario: Scenario) -> tuple[Message, ...]:
            if id(scenario) not in prompts:
                system, *chat = self.messages(scenario, split.personas[scenario.persona], sap)
                prompts[id(scenario)] = scenario, (systems.setdefault(system, system), *chat)
            return prompts[id(scenario)][1]

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
        language = scenario.language
        record = find_language(scenario.language)
        if language not in persona.names:
            raise ConfigError(
                f"persona {persona.id!r} has no {language!r} description, which {scenario.id} needs; "
                f"add a [{language}] table to the persona's file (it has {', '.join(persona.names)})"
            )
        key = language, sap, country_of(scenario)
        if key not in self._sap_texts:
            self._sap_texts[key] = sap.render(
                language, self.templates, self.help_lines.rows(language, key[2])
            )
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
            chat = []
            for role, turns in groupby(scenario.turns, attrgetter("role")):
                text = "\n".join(turn.content for turn in turns)
                chat.append(Message("user" if role == "user" else "assistant", text))
            if chat[0].role != "user":
                values["opening"] = chat.pop(0).content
            return self._system(name, values), *chat
        system = self._system(name, values)
        material = self.templates.render(name, values | {"part": "user"})
        if not material:
            where = self.templates.origin(name)
            raise ConfigError(
                f"{where}: block `user` is empty; put the material of {scenario.subtask} there"
            )
        return system, Message("user", material)

    def _system(self, name: str, values: Mapping[str, object]) -> Message:
        """Return the system text; persona and SAP, which all scenarios of a persona share, come first."""
        text = self.templates.render(name, values)
        shared = 0
        for beginning in (str(values["persona"]), str(values["sap"])):
            if beginning in text:
                shared = max(shared, text.find(beginning) + len(beginning))
        return Message("system", text, shared=shared)


def prompt_lines(
    scenario_id: str | None, split_name: str, sap: str, folder: Path | None = None
) -> Iterator[str]:
    """Yield the lines to print: a `--- role ---` heading and the text of each message, or one JSON object a scenario.

    `scenario_id`: the scenario; None, or `all` where no scenario has this id, prints every one as JSON, in ASCII, so
    that control characters are escaped. The others are as in `EvaluateSpec`.
    """
    split = load_split(split_name)
    scaffolding = Sap.parse(sap)
    prompt_of = PromptSet.load(folder).prompt_of(split, scaffolding)
    chosen = [scenario for scenario in split.scenarios if scenario.id == scenario_id]
    if not chosen and scenario_id not in (None, "all"):
        suggestion = suggest(scenario_id, [scenario.id for scenario in split.scenarios])
        raise ConfigError(
            f"split {split.name} has no scenario {quoted(scenario_id)}; {suggestion}`all` shows every one"
        )
    for scenario in chosen or split.scenarios:
        messages = prompt_of(scenario)
        if not chosen:
            listed = [{"role": turn.role, "content": turn.content} for turn in messages]
            yield json.dumps({"id": scenario.id, "messages": listed}).replace("\x7f", "\\u007f")
            continue
        for message in messages:
            yield f"--- {message.role} ---"
            # Line ends stay; other control characters are escaped.
            yield from (printable(line) for line in message.content.split("\n"))

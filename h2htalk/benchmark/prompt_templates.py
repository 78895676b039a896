"""The prompt templates: where they are read from, what is checked on the way, and how one is rendered.

A user's folder overrides the bundled templates file by file. Its templates are code, so they run in Jinja's
sandbox, and a slip in them is an error before any model is asked: names that mean nothing, syntax, text or
blocks that would never show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
from jinja2 import meta, nodes

from h2htalk.data.dialogue import LANGUAGES
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.text.templates import FAULTS, Sandbox, open_environment, place, read_templates, reason


@dataclass(frozen=True, slots=True, eq=False)
class TemplateSet:
    """All templates by name (`en/dialogue_base.j2`): their text, the file each came from, compiled on use."""

    sources: Mapping[str, str]
    _origins: Mapping[str, str]
    _environment: Sandbox

    @classmethod
    def load(cls, folder: Path | None = None, alone: bool = False) -> TemplateSet:
        """The bundled templates, with those of `folder` in place of their namesakes; `alone`: the folder's only.

        Raises:
            ConfigError: no such folder, or a `.j2` file in it that cannot work; names the file and line.
        """
        own = {} if folder is None else read_templates(folder)
        for name, (path, _) in own.items():
            if not alone and name not in _bundled():
                raise ConfigError(
                    f"{path}: no prompt has this name; a prompts folder holds LANGUAGE/SUBTASK.j2, "
                    "LANGUAGE/_companion.j2 and LANGUAGE/sap/PRINCIPLE.j2, with LANGUAGE one of "
                    f"{', '.join(LANGUAGES)}"
                )
        found = own if alone else {**_bundled(), **own}
        sources = {name: text for name, (_, text) in sorted(found.items())}
        origins = {name: str(path) for name, (path, _) in found.items()}
        templates = cls(sources, origins, open_environment(sources, origins))
        # A companion template of one's own may drop a block that bundled subtasks fill.
        for name in sources if any(name.endswith("/_companion.j2") for name in own) else own:
            templates._check(name)
        return templates

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """One template's text without outer white space.

        Raises:
            ConfigError: the template fails (an undefined variable, say); names its file and line.
        """
        try:
            return self._environment.get_template(name).render(values).strip()
        except FAULTS as error:
            why = reason(error)
            if isinstance(error, jinja2.UndefinedError):
                why = f"{why}; this template may use {', '.join(sorted(values))}"
            raise ConfigError(f"{self._place(name, error)}: {why}") from error

    def origin(self, name: str) -> str:
        """The file that a template came from, for messages."""
        return self._origins[name]

    def _check(self, name: str) -> None:
        try:
            self._environment.get_template(name)
            tree = self._environment.parse(self.sources[name])
        except FAULTS as error:
            raise ConfigError(f"{self._place(name, error)}: {reason(error)}") from error
        language, _, rest = name.partition("/")
        companion = f"{language}/_companion.j2"
        # Without the switch, the material of a task would stand in the system text and again after it.
        if name == companion and "part" not in meta.find_undeclared_variables(tree):
            raise ConfigError(
                f'{self._origins[name]}:1: must choose its block by {{% if part == "system" %}}'
            )
        if rest.removesuffix(".j2") in SUBTASKS:
            self._check_subtask(tree, self._origins[name], companion)

    def _check_subtask(self, tree: nodes.Template, origin: str, companion: str) -> None:
        """A subtask's template extends the companion's, and all that it says stands in blocks of that one."""
        parents = [getattr(node.template, "value", None) for node in tree.find_all(nodes.Extends)]
        if parents != [companion]:
            raise ConfigError(f'{origin}:1: must begin with {{% extends "{companion}" %}}')
        blocks = [b.name for b in self._environment.parse(self.sources[companion]).find_all(nodes.Block)]
        for node in tree.body:
            where, choices = f"{origin}:{node.lineno}", ", ".join(blocks)
            if isinstance(node, nodes.Block) and node.name not in blocks:
                raise ConfigError(f"{where}: block {node.name!r} would never show; choose from {choices}")
            if isinstance(node, nodes.Output) and not _is_blank(node):
                raise ConfigError(f"{where}: text outside a block would never show; put it into {choices}")

    def _place(self, name: str, error: Exception) -> str:
        return place(name, error, self._origins)


def _is_blank(node: nodes.Output) -> bool:
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes)


@cache
def _bundled() -> Mapping[str, tuple[Path, str]]:
    return read_templates(Path(str(files("h2htalk.benchmark") / "prompts")))

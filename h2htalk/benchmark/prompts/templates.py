"""Read and check the prompt templates of the benchmark.

A user's folder overrides the bundled templates file by file. Templates run in Jinja's sandbox. Mistakes in them are
errors before any call to a model: unknown file names, syntax, text or blocks that would never be printed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import meta, nodes

from h2htalk.data.files import require_new_folder, write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.text.jinja_templates import TemplateFiles, Templates, read_templates


class TemplateSet(Templates):
    """All templates of the benchmark by name (`en/dialogue_base.j2`)."""

    __slots__ = ()

    @classmethod
    def load(cls, folder: Path | None = None, alone: bool = False) -> TemplateSet:
        """Read the bundled templates; those of `folder` replace the ones of the same name (`alone`: use only those)."""
        own = {} if folder is None else read_templates(folder)
        for name, (path, _) in own.items():
            if not alone and name not in _bundled():
                raise ConfigError(
                    f"{path}: no prompt has this name; a prompts folder holds LANGUAGE/SUBTASK.j2, "
                    "LANGUAGE/_companion.j2 and LANGUAGE/sap/PRINCIPLE.j2, with LANGUAGE one of "
                    f"{', '.join(LANGUAGES)}"
                )
        templates = cls.of({} if alone else _bundled(), own)
        changed = [name for name, (_, text) in own.items() if name not in _bundled() or text != _bundled()[name][1]]
        # A user's companion template may lack a block that bundled subtasks fill.
        for name in templates.sources if any(name.endswith("/_companion.j2") for name in changed) else changed:
            templates._check(name)
        return templates

    def _check(self, name: str) -> None:
        tree = self.parse(name)
        language, _, rest = name.partition("/")
        companion = f"{language}/_companion.j2"
        # Without the condition, the material of a task would be in the system text and again after it.
        if name == companion and "part" not in meta.find_undeclared_variables(tree):
            raise ConfigError(f'{self.origin(name)}:1: must choose its block by {{% if part == "system" %}}')
        if rest.removesuffix(".j2") in SUBTASKS:
            self._check_subtask(tree, self.origin(name), companion)

    def _check_subtask(self, tree: nodes.Template, origin: str, companion: str) -> None:
        """Check that a subtask's template extends the companion's and has all its text in blocks of it."""
        parents = [getattr(node.template, "value", None) for node in tree.find_all(nodes.Extends)]
        if parents != [companion]:
            raise ConfigError(f'{origin}:1: must begin with {{% extends "{companion}" %}}')
        blocks = [b.name for b in self.parse(companion).find_all(nodes.Block)]
        for node in tree.body:
            where, choices = f"{origin}:{node.lineno}", ", ".join(blocks)
            if isinstance(node, nodes.Block) and node.name not in blocks:
                raise ConfigError(f"{where}: block {node.name!r} would never show; choose from {choices}")
            if isinstance(node, nodes.Output) and not _is_blank(node):
                raise ConfigError(f"{where}: text outside a block would never show; put it into {choices}")


def export_templates(folder: Path) -> list[Path]:
    """Write the bundled templates into a new folder; return the files. Raises DataError where it holds files."""
    require_new_folder(folder)
    written = []
    for name, (_, text) in sorted(_bundled().items()):
        write_text(folder / name, text)
        written.append(folder / name)
    return written


def is_bundled(folder: Path) -> bool:
    """Whether all templates of a folder are the package's. Raises ConfigError."""
    bundled = {name: text for name, (_, text) in _bundled().items()}
    return {name: text for name, (_, text) in read_templates(folder).items()}.items() <= bundled.items()


def _is_blank(node: nodes.Output) -> bool:
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes)


@cache
def _bundled() -> TemplateFiles:
    return read_templates(Path(str(files("h2htalk.benchmark") / "prompts")))

"""What all pages of a site share: its sources, its words and the frame of its pages."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import Language, find_language
from h2htalk.site.sources import Sources
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table
from h2htalk.version import __version__

_SITE = files("h2htalk.site")
Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart with the table beside it, or one of them; `path` names its files, whose table is `plain`."""

    path: str
    svg: str
    says: str
    table: Table | None
    heading: str = ""
    plain: Table | None = None

    @property
    def files(self) -> dict[str, str]:
        """Path in the site -> text."""
        tables = {"csv": self.plain.to_csv(), "tex": self.plain.to_latex()} if self.plain else {}
        named = {f"tables/{self.path}.{kind}": text for kind, text in tables.items()}
        return {f"figures/{self.path}.svg": self.svg, **named} if self.svg else named


def noted_panel(path: str, svg: str, says: str, table: Table) -> Panel:
    """Return a panel whose notes are in the files of its table alone."""
    return Panel(path, svg, says, replace(table, notes=()), table.title, table)


@dataclass(frozen=True, slots=True)
class Context:
    """What all pages share: the sources, the words of the site's language, and its title."""

    sources: Sources
    words: Words  # of words/LANGUAGE.toml
    language: Language
    title: str

    def page(
        self, name: str, view: Mapping[str, Any], depth: int = 0, scripts: Sequence[str] = ()
    ) -> str:
        """Render a template of `pages/`; `depth`: folders between the page and the site's root."""
        canaries = {split.canary for split in self.sources.splits}
        canaries |= {funnel.canary for funnel in self.sources.funnels}
        shared = {
            "language": self.language,
            "canary": " ".join(sorted(filter(None, canaries))),
            "words": self.words,
            "site": self.title,
            "root": "../" * depth,
            "version": __version__,
            "runs": self.sources.runs,
            **self.words["frame"],
            "tiles": (),
        }
        return render_page(
            _SITE / "pages", {**shared, **view}, scripts, page=name, loads_scripts=bool(scripts)
        )


def read_words(language: Language) -> Mapping[str, Any]:
    """The words of the site in a language."""
    find_language(language)  # or an error that names those there are
    return tomllib.loads((_SITE / "words" / f"{language}.toml").read_text(encoding="utf-8"))

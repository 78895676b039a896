"""Write a site: every page and data file into a folder that is replaced as a whole, or not at all.

index.html             the leaderboards, one for each protocol, and the paper's rows
models/KEY.html        a run: subtasks, slices, contracts, judge, costs, signature
studies/KEY.html       a study: its tables, charts and the replies to read first
items.html             the item browser; it loads data/items-*.js, a chunk for the items and one for each run
data.parquet           every score, a row for each run and item
site.json              what the site was made of, by which an erasure finds it; written last
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.site.sources import Sources, read_sources
from h2htalk.text.html_pages import render_page
from h2htalk.version import __version__

_SITE = files("h2htalk.site")


@dataclass(frozen=True, slots=True)
class Context:
    """What all pages share: the sources, the words of the site's language, and its title."""

    sources: Sources
    words: Mapping[str, Any]  # of words/LANGUAGE.toml
    language: Language
    title: str

    @property
    def canaries(self) -> tuple[str, ...]:
        """The canary strings of all splits that are shown."""
        splits = [
            *(one.run.data.split for one in self.sources.runs),
            *(one.result.study.split for one in self.sources.studies),
        ]
        return tuple(sorted({split.canary for split in splits if split.canary}))

    def page(self, name: str, view: Mapping[str, Any], depth: int = 0, scripts: Sequence[str] = ()) -> str:
        """Render a template of `pages/`; `depth`: folders between the page and the site's root."""
        shared = {
            "language": self.language,
            "canary": " ".join(self.canaries),
            "words": self.words,
            "site": self.title,
            "root": "../" * depth,
            "version": __version__,
            "has_items": bool(self.sources.runs),
            "tiles": (),
        }
        return render_page(_SITE / "pages", {**shared, **view}, scripts, page=name, beside=bool(scripts))


def read_words(language: Language) -> Mapping[str, Any]:
    """The words of the site in a language."""
    return tomllib.loads((_SITE / "words" / f"{language}.toml").read_text(encoding="utf-8"))


def build_site(
    paths: Sequence[Path], out: Path, language: Language = "en", title: str = "H2HTalk", paper: bool = True
) -> list[str]:
    """Write the site of runs and studies into a folder; return what was written and what was left out.

    Raises:
        ConfigError: a folder is no scored run and no study, or something in it must not be published (`leaks`).
        DataError: a folder was edited, or `out` holds something else.
    """
    context = Context(read_sources(paths), read_words(language), language, title)
    raise NotImplementedError(context)

"""What all pages of a site share: its sources, its words and the frame of its pages."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.site.sources import Sources
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

    def page(self, name: str, view: Mapping[str, Any], depth: int = 0, scripts: Sequence[str] = ()) -> str:
        """Render a template of `pages/`; `depth`: folders between the page and the site's root."""
        shared = {
            "language": self.language,
            "canary": " ".join(sorted({split.canary for split in self.sources.splits if split.canary})),
            "words": self.words,
            "site": self.title,
            "root": "../" * depth,
            "version": __version__,
            "has_items": bool(self.sources.runs),
            **{name: self.words["frame"][name] for name in ("skip", "sections", "summary")},
            "tiles": (),
        }
        return render_page(_SITE / "pages", {**shared, **view}, scripts, page=name, beside=bool(scripts))


def read_words(language: Language) -> Mapping[str, Any]:
    """The words of the site in a language."""
    return tomllib.loads((_SITE / "words" / f"{language}.toml").read_text(encoding="utf-8"))

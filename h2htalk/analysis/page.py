"""An analysis as one HTML file that needs no network, no server and no script: every figure with its table.

Nothing in it can act: the page forbids everything but its own style sheet (by hash) and pictures that lie within
it; the pictures are SVG in image elements, where neither scripts nor links work; every text goes through an
escaping template.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from h2htalk.analysis.analyze import Analysis
from h2htalk.analysis.exhibits import Exhibit
from h2htalk.analysis.page_view import page_view

_PAGE = files("h2htalk.analysis") / "page"


def page_text(
    analysis: Analysis, shown: Sequence[Exhibit], pictures: Mapping[str, str], made: Mapping[str, str]
) -> str:
    """The page.

    Args:
        shown: what it shows, in its order.
        pictures: each exhibit's SVG, by its name.
        made: with what the analysis was made, texts by name.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    style = _PAGE.joinpath("page.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(str(_PAGE)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        view=page_view(analysis, shown, pictures, made), style=Markup(style), style_hash=_hash(style)
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

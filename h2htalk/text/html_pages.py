"""Render pages that are one HTML file and need no network, no server and no second file.

A page's policy forbids everything but its own style sheet and script (by hash) and, where it has
any, pictures embedded in it; every text goes through an escaping template.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from h2htalk.text.help_lines import read_help_lines

_BASE = files("h2htalk.text") / "page"


def render_page(
    folder: Traversable,
    view: Mapping[str, Any],
    scripts: Sequence[str] = (),
    pictures: bool = False,
    page: str = "page.html",
    loads_scripts: bool = False,
) -> str:
    """Render a folder's `page` in the frame of `base.html`, with its `page.css`, if it has one, after `base.css`.

    Args:
        folder: a real folder with `page.html`, which extends `base.html`, and the scripts.
        view: what the template shows as `view`, plain values. `tiles` is for the frame: the main figures,
            each with `label`, `value` and `note`.
        scripts: files of the folder that run, joined in this order, after the page has loaded.
        pictures: the page holds pictures, as data addresses.
        loads_scripts: the page may load scripts that lie beside it, from a disk or a host.

    Raises jinja2.UndefinedError where the template names a value that the view lacks.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    style = _text(_BASE, "base.css")
    if (folder / "page.css").is_file():
        style += "\n" + _text(folder, "page.css")
    script = "\n".join(_text(folder, name) for name in scripts)
    rules = ["default-src 'none'"]
    if pictures:
        rules.append("img-src data:")
    rules.append(f"style-src '{_hash(style)}'")
    sources = []
    if script:
        sources.append(f"'{_hash(script)}'")
    if loads_scripts:
        sources += ["'self'", "file:"]
    if sources:
        rules.append(f"script-src {' '.join(sources)}")
    rules += ["base-uri 'none'", "form-action 'none'"]
    jinja = Environment(
        loader=FileSystemLoader([str(folder), str(_BASE)]),
        autoescape=True,
        undefined=StrictUndefined,
    )
    jinja.trim_blocks = jinja.lstrip_blocks = True
    # Nothing in it needs escaping, and its quotes stay readable.
    policy = Markup("; ".join(rules))
    return jinja.get_template(page).render(
        view=view,
        help_lines=read_help_lines,
        style=Markup(style),
        script=Markup(script),
        policy=policy,
    )


def _text(folder: Traversable, name: str) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()

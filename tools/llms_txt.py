"""Write docs/llms.txt, the list of all pages for language models: python tools/llms_txt.py > docs/llms.txt"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def pages(nav: list[Any]) -> Iterator[str]:
    """Yield the paths of the pages below a part of the nav."""
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from pages(value) if isinstance(value, list) else [value]


def line_of(path: str) -> str:
    """A link to the page, with the first sentence under its title."""
    title, text = (
        (ROOT / "docs" / path).read_text(encoding="utf-8").removeprefix("# ").split("\n\n")[:2]
    )
    plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text.replace("\n", " "))
    return f"- [{title}]({path}): " + re.split(r"(?<=\.)\s(?=\D)", plain, maxsplit=1)[0]


def llms_txt() -> str:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    home, *kinds = site["nav"]
    lines = [f"# {site['site_name']}", f"\n> {site['site_description']}\n", line_of(home["Home"])]
    for kind in kinds:
        for name, nav in kind.items():
            lines += [f"\n## {name}\n", *map(line_of, pages(nav))]
    return "\n".join(lines)


if __name__ == "__main__":
    print(llms_txt())

"""The words of a study's tables (`words.toml`): titles of arms and figures, titles, headings and notes of tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from h2htalk.text.tables import Table

WORDS = tomllib.loads((files("h2htalk.benchmark.studies") / "report/words.toml").read_text("utf-8"))
NAMES: Mapping[str, str] = WORDS["figures"]
TITLES: Mapping[str, str] = WORDS["studies"]
# A statement that the gate makes, too.
TIES: str = WORDS["ties"]
TRIVIAL: str = WORDS["tables"]["table3"]["notes"][3]


def worded_table(
    key: str,
    lines: Sequence[Sequence[Any]],
    headings: Iterable[str] = (),
    notes: Iterable[str] = (),
    **values: object,
) -> Table:
    """Return a table with the words of `tables.KEY`, filled with `values`, before further headings and notes."""
    words = WORDS["tables"][key]
    name = words.get("name", key).format(**values)
    header = [heading.format(**values) for heading in words["header"]]
    known_notes = [note.format(**values) for note in words.get("notes", ())]
    title = words["title"].format(**values)
    return Table(title, (*header, *headings), lines, (*known_notes, *notes), name)

"""A table as texts, and its forms: terminal, CSV, Markdown."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.benchmark.statistics.cluster_bootstrap import ClusteredResult
from h2htalk.benchmark.studies.figures import Figure
from h2htalk.text.escaping import printable

NONE = "-"


@dataclass(frozen=True, slots=True)
class StudyTable:
    """A table of texts with notes below it. `name` is that of its files; `key`: how many columns at the left are
    names."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    key: int = 1

    def to_text(self) -> str:
        """For the terminal: names to the left, figures to the right."""
        lines = [self.header, *self.rows]
        widths = [max(_width(line[k]) for line in lines) for k in range(len(self.header))]
        shown = [
            "  ".join(_pad(cell, widths[k], k >= self.key) for k, cell in enumerate(line)).rstrip() for line in lines
        ]
        return "\n".join([self.title, *shown, *self.notes])

    def to_csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def to_markdown(self) -> str:
        """With the title as a heading; what others wrote is escaped."""
        lines = [f"### {self.title}", "", _row(self.header)]
        lines.append("|" + "".join(" --- |" if k < self.key else " ---: |" for k in range(len(self.header))))
        lines += [*map(_row, self.rows), "", *(f"* {_cell(note)}" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def percent(figure: Figure, count: bool = False) -> str:
    """`6.7 % (3.7 to 11.8)`; with `count` also `10 of 150`."""
    if figure.value is None:
        return NONE
    ends = _ends(figure, 100.0, 1)
    hits = f", {figure.hits:,} of {figure.n:,}" if count and figure.hits is not None else ""
    return f"{100 * figure.value:.1f} %{ends}{hits}"


def score(figure: Figure, times: float = 1.0, digits: int = 1) -> str:
    """`32.7 (30.1 to 35.2)`."""
    if figure.value is None:
        return NONE
    ends = _ends(figure, times, digits)
    return f"{times * figure.value:.{digits}f}{ends}"


def shift(result: ClusteredResult | None, times: float = 100.0, digits: int = 1) -> str:
    """`-5.9 (-9.6 to -2.4), p .001`."""
    if result is None:
        return NONE
    ends = ""
    if result.low is not None and result.high is not None:
        ends = f" ({times * result.low:+.{digits}f} to {times * result.high:+.{digits}f})"
    p = "p < .001" if result.p < 0.001 else f"p {result.p:.3f}".replace("p 0", "p ")
    return f"{times * result.value:+.{digits}f}{ends}, {p}"


def scored(figure: Figure) -> str:
    """`150 of 150`."""
    return f"{figure.n:,} of {figure.total:,}"


def _ends(figure: Figure, times: float, digits: int) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" ({times * figure.low:.{digits}f} to {times * figure.high:.{digits}f})"

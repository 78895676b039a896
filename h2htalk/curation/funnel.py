"""The funnel: how many dialogues came in, what each stage let go and why, how many candidates came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from h2htalk.curation.curate import StageCounts
from h2htalk.data.files import write_problem
from h2htalk.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

# What a stage reads; dialogues become candidates in compose.
_UNITS = {"review": "candidates"}
_DRAWN = (".svg", ".pdf", ".png")
_SHOWN = 8  # reasons a stage, most frequent first; the rest as one sum


def unit(stage: str) -> str:
    """What a stage reads: `dialogues` or `candidates`."""
    return _UNITS.get(stage, "dialogues")


def funnel_table(found: Sequence[StageCounts]) -> Table:
    """A row a stage, for the terminal; `notes` says why."""
    from rich.table import Table

    table = Table(title="Funnel", title_justify="left", expand=False)
    for heading in ("stage", "reads", "read", "kept", "rejected", "goes on"):
        table.add_column(heading, justify="left" if heading in ("stage", "reads") else "right")
    for item in found:
        counts = item.counts
        numbers = (counts.read, counts.kept, counts.rejected, counts.written)
        table.add_row(item.stage, unit(item.stage), *(f"{n:,}" for n in numbers))
    return table


def notes(found: Sequence[StageCounts]) -> str:
    """Each stage's reasons and marks in words, and what it says of itself, a line each."""
    lines = []
    for item in found:
        counts = item.counts
        if counts.reasons:
            beside = f" ({counts.dropped:,} beside what was kept)" if counts.dropped else ""
            lines.append(f"{item.stage:10} rejected{beside}: {_listed(counts.reasons)}")
        if counts.tags:
            lines.append(f"{item.stage:10} marked: {_listed(counts.tags)}")
        lines += [f"{item.stage:10} {told}" for told in item.told]
    return "\n".join(lines)


def _listed(counts: Mapping[str, int]) -> str:
    shown = list(counts.items())
    said = [f"{name} {number:,}" for name, number in shown[:_SHOWN]]
    rest = sum(number for _, number in shown[_SHOWN:])
    return ", ".join([*said, *([f"and {len(shown) - _SHOWN} more kinds {rest:,}"] if rest else [])])


def draw_funnel(found: Sequence[StageCounts], path: Path) -> None:
    """Draw the funnel as SVG, PDF or PNG (by the file's ending): a bar a stage, what it kept and what it let go.

    Raises:
        ConfigError: another ending, or the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix.lower() not in _DRAWN:
        raise ConfigError(f"{path}: a drawing's name ends in {', '.join(_DRAWN)}")
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise MissingExtraError("drawing the funnel", 'pip install "h2htalk[analysis]"') from error
    figure = funnel_figure(found)
    # The same counts give the same file: no date, and in SVG no ids drawn by chance.
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix.lower())
    try:
        with rc_context({"svg.hashsalt": "funnel"}):
            figure.savefig(path, metadata={dated: None} if dated else None, dpi=150)
    except OSError as error:
        raise ConfigError(f"{path}: {write_problem(error)}") from error


def funnel_figure(found: Sequence[StageCounts]) -> Figure:
    """The drawing, a bar a stage from the top: what it kept, and beside it what it rejected. Needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    told = "\n".join(fill(f"{item.stage}: {said}", 110) for item in found for said in item.told)
    height = 0.75 * len(found) + 1.1 + 0.16 * len(told.splitlines())
    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rows = range(len(found))
    kept = [item.counts.kept for item in found]
    rejected = [item.counts.rejected for item in found]
    axes.barh(rows, kept, color="#3b6ea5", label="kept")
    axes.barh(rows, rejected, left=kept, color="#d9a441", label="rejected")
    widest = max([item.counts.read for item in found], default=1) or 1
    for row, item in enumerate(found):
        label = f"{item.counts.kept:,} of {item.counts.read:,}"
        axes.text(item.counts.read + widest * 0.01, row, label, va="center", fontsize=9)
    axes.set_yticks(rows, [f"{item.stage}\n({unit(item.stage)})" for item in found])
    axes.invert_yaxis()
    axes.set_xlim(0, widest * 1.18)
    axes.set_title("What each stage kept", loc="left")
    axes.legend(loc="lower right", frameon=False)
    if told:
        axes.set_xlabel(told, loc="left", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure

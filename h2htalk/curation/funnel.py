"""The funnel: how many records each stage read, kept and rejected, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from h2htalk.curation.curate import StageSummary
from h2htalk.curation.stages import find_stage
from h2htalk.data.files import write_problem
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.tables import Table

# Endings of a drawing, and the name of the date in its metadata.
_FORMATS = {".svg": "Date", ".pdf": "CreationDate", ".png": ""}
_SHOWN = 8  # reasons of a stage, the most frequent first; the others as one sum


def funnel_table(summaries: Sequence[StageSummary]) -> Table:
    """One row a stage; `funnel_notes` gives the reasons."""
    earlier = any(summary.counts.earlier for summary in summaries)
    header = ("stage", "unit", "read", "kept", "rejected", *(["earlier states"] if earlier else []), "written")
    rows = []
    for summary in summaries:
        counts = summary.counts
        numbers = (counts.read, counts.kept, counts.rejected, *([counts.earlier] if earlier else []), counts.written)
        rows.append((summary.stage, find_stage(summary.stage).reads, *numbers))
    return Table("Funnel", header, rows)


def funnel_notes(summaries: Sequence[StageSummary]) -> str:
    """The reasons, tags and notes of each stage, one a line."""
    lines = []
    for summary in summaries:
        counts = summary.counts
        if counts.reasons:
            dropped = f" ({counts.dropped:,} of kept records)" if counts.dropped else ""
            lines.append(f"{summary.stage:10} rejected{dropped}: {_format_counts(counts.reasons)}")
        if counts.tags:
            lines.append(f"{summary.stage:10} tagged: {_format_counts(counts.tags)}")
        lines += [f"{summary.stage:10} {note}" for note in summary.notes]
    return "\n".join(lines)


def _format_counts(counts: Mapping[str, int]) -> str:
    texts = [f"{name} {number:,}" for name, number in counts.items()]
    if len(texts) > _SHOWN:
        rest = sum(list(counts.values())[_SHOWN:])
        texts[_SHOWN:] = [f"{len(texts) - _SHOWN} others {rest:,}"]
    return ", ".join(texts)


def draw_funnel(summaries: Sequence[StageSummary], path: Path) -> None:
    """Draw a bar for each stage: what it kept, and beside it what it rejected. The same counts give the same file.

    The file's ending says whether as SVG, PDF or PNG. Raises ConfigError for another one and for a file that cannot be
    written, MissingExtraError where matplotlib is not installed.
    """
    ending = path.suffix.lower()
    if ending not in _FORMATS:
        raise ConfigError(f"{path}: the name of a drawing must end in {', '.join(_FORMATS)}")
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing the funnel", 'pip install "h2htalk[analysis]"') from error
    notes = "\n".join(fill(f"{item.stage}: {note}", 110) for item in summaries for note in item.notes)
    height = 0.75 * len(summaries) + 1.1 + 0.16 * len(notes.splitlines())
    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rows = range(len(summaries))
    kept = [item.counts.kept for item in summaries]
    axes.barh(rows, kept, color="#3b6ea5", label="kept")
    axes.barh(rows, [item.counts.rejected for item in summaries], left=kept, color="#d9a441", label="rejected")
    widest = max([item.counts.kept + item.counts.rejected for item in summaries], default=1) or 1
    for row, item in enumerate(summaries):
        read = item.counts.kept + item.counts.rejected
        axes.text(read + widest * 0.01, row, f"{item.counts.kept:,} of {read:,}", va="center", fontsize=9)
    axes.set_yticks(rows, [f"{item.stage}\n({find_stage(item.stage).reads})" for item in summaries])
    axes.invert_yaxis()
    axes.set_xlim(0, widest * 1.18)
    axes.set_title("What each stage kept", loc="left")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)  # above the bars, beside the title
    if notes:
        axes.set_xlabel(notes, loc="left", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    date = _FORMATS[ending]
    try:
        with rc_context({"svg.hashsalt": "funnel"}):  # else SVG ids are random
            figure.savefig(path, metadata={date: None} if date else None, dpi=150)
    except OSError as error:
        raise ConfigError(f"{path}: {write_problem(error)}") from error

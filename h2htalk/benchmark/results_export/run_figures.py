"""The figures of a run by language, and what every export must know about the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from h2htalk.benchmark.load_run import Run
from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.statistics.table2_averages import Cell, ItemValue, aggregate
from h2htalk.benchmark.summary import Measure
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, counted

# A folder of this machine before a name, as in `bge-m3:/data/models/bge-m3`.
_FOLDER = re.compile(r"(^|:)(?:~|\.{1,2})?/(?:\S*/)?")


class LanguageFigures(NamedTuple):
    """A cell for each of `subtasks.FIGURES` that has a value; the lexical mean where there is no S."""

    measure: Measure
    cells: dict[str, Cell]


def language_figures(scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore]) -> dict[Language, LanguageFigures]:
    """Aggregate the scored items of each language."""
    figures: dict[Language, LanguageFigures] = {}
    for language in LANGUAGES:
        own = [s for s in scenarios if s.language == language]
        measure: Measure = "s" if any(scores[s.id].s is not None for s in own) else "lexical"
        row = aggregate(ItemValue(s.id, s.subtask, getattr(scores[s.id], measure)) for s in own)
        cells = {"overall": row.overall, **row.dimensions, **row.cells}
        if valued := {name: cell for name, cell in cells.items() if cell.value is not None}:
            figures[language] = LanguageFigures(measure, valued)
    return figures


def require_scored(run: Run) -> None:
    """Raise ConfigError unless each item of a run has a score."""
    counts, path = run.summary.counts, run.data.folder.path
    if counts.unscored:
        raise ConfigError(f"{path}: incomplete: {counted(counts.unscored, 'item')} unscored; finish the run first")
    if counts.private:
        raise ConfigError(
            f"{path}: not scored: its references are private; h2htalk score RUN --references FILE scores it"
        )


def answered_at(run: Run) -> datetime:
    """When the run's last session ended; of a run that does not know it, when its answers were last written."""
    if ended := run.summary.answering.ended:
        return datetime.fromisoformat(ended)
    return datetime.fromtimestamp(int(run.data.folder.shard.stat().st_mtime), UTC)


def hub_name(split: Split) -> str:
    """`OWNER/NAME` of a split that was loaded from the Hub."""
    return split.source.removeprefix("hub:").partition("@")[0]


def without_folders(texts: Mapping[str, str]) -> dict[str, str]:
    """The values of a signature without folders of this machine."""
    return {key: _FOLDER.sub(r"\1", text) for key, text in texts.items()}

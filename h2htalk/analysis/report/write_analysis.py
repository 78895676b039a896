"""Write an analysis as a folder: tables, figures, the page, and a summary for other programs."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis, SplitAnalysis
from h2htalk.analysis.figures.style import find_font, save_figure
from h2htalk.analysis.measures.scenario_texts import Side
from h2htalk.analysis.report.analysis_page import page_text
from h2htalk.analysis.report.figure_specs import FigureSpec, figure_specs, histograms_table
from h2htalk.data.files import (
    read_json_object,
    remove_file,
    write_json,
    write_text,
    writer_lock,
    writing,
)
from h2htalk.data.run_folder import MADE_BY, PAGE, SUMMARY
from h2htalk.errors import ConfigError, H2HTalkError, MissingExtraError, listed, quoted
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.parsing.parsing import INSTALL
from h2htalk.version import installed_versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_FREQUENT = 20  # words and pairs that the summary names
_UNFINISHED = ".analysis"  # of the folder and the lock of an unfinished or killed write
# Packages whose version can change a figure.
_PACKAGES = ("spacy", "lemminflect", "jieba", "sacrebleu", "tokenizers", "wordcloud", "matplotlib")


def require_output(folder: Path) -> None:
    """Refuse, before the work begins, a folder that `write_analysis` would refuse after it.

    Raises ConfigError where it is neither new nor empty nor the folder of an earlier analysis, or cannot be written,
    MissingExtraError where a package that draws is not installed.
    """
    try:
        nearest = next(filter(os.path.lexists, (folder, *folder.absolute().parents)))
        names = os.listdir(nearest)
        writable = os.access(nearest, os.W_OK | os.X_OK)
    except OSError as error:
        raise ConfigError(f"--out {folder}: {error.strerror or error}; name another one") from error
    if not writable:
        raise ConfigError(f"--out {folder}: {nearest} cannot be written to; name another one")
    things = sorted(quoted(name) for name in names if not name.startswith(_UNFINISHED))
    if nearest == folder and things and not _is_analysis(folder):
        advice = "name a new folder, or that of an earlier analysis"
        raise ConfigError(f"--out {folder} holds other things ({listed(things, 3)}); {advice}")
    for package in ("matplotlib", "wordcloud"):
        if find_spec(package) is None:
            raise MissingExtraError("drawing figures", INSTALL)


def _is_analysis(folder: Path) -> bool:
    try:
        summary = read_json_object(folder / SUMMARY)
    except (FileNotFoundError, H2HTalkError):
        return False
    return summary.get("made_by") == MADE_BY


def write_analysis(analysis: Analysis, folder: Path, processes: int = 1) -> Path:
    """Write tables, figures, `summary.json` and `index.html`; return the page, which is written last.

    An earlier analysis in the folder is replaced; a reader never sees half a file. With more than one process drawing,
    a script must call this under `if __name__ == "__main__":`. Raises what `require_output` does, and DataError where
    the folder cannot be written, another process is writing it, or the disk is full.
    """
    specs = figure_specs(analysis)
    with replaced(folder) as new:
        _write_tables(analysis, specs, new / "tables")
        pictures = _draw_figures(specs, new / "figures", processes)
        settings = made_with(analysis)
        write_text(new / PAGE, page_text(analysis, specs, pictures, settings))
        write_json(new / SUMMARY, _summary(analysis, settings))
    return folder / PAGE


def _write_tables(analysis: Analysis, specs: Sequence[FigureSpec], folder: Path) -> None:
    """Write the table of each figure, once where figures share it, and the bins of the histograms."""
    tables = {spec.table.name: spec.table for spec in specs}
    for part in analysis.split.languages:
        histograms = histograms_table(part)
        tables[histograms.name] = histograms
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())


def _draw_figures(specs: Sequence[FigureSpec], folder: Path, processes: int) -> dict[str, str]:
    """Draw each figure into the folder, in all formats; return the SVGs by name."""
    drawings = {spec.name: spec.draw for spec in specs if spec.draw}
    processes = min(processes, usable_cores())
    with Progress("drawing", len(drawings)) as progress, ExitStack() as stack:
        mapped = stack.enter_context(ProcessPool(processes)).map if processes > 1 else map
        for _ in mapped(_draw, drawings.values(), repeat(folder), drawings):
            progress.advance()
    return {name: (folder / f"{name}.svg").read_text(encoding="utf-8") for name in drawings}


def _draw(draw: Callable[[], Figure], folder: Path, name: str) -> None:
    # With a read-only home matplotlib would warn in each process that its cache cannot be written.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    save_figure(draw(), folder, name)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Create a folder inside `folder` to write an analysis into; it replaces the old analysis when the block ends.

    `tables` and `figures` move whole, then `summary.json`, the page last: a killed move leaves a folder that is known
    as an analysis, and a complete page. Other files stay. When the block fails, nothing has changed. Raises what
    `write_analysis` does.
    """
    require_output(folder)
    new = folder / _UNFINISHED
    with ExitStack() as stack:
        if not os.path.lexists(folder):
            stack.callback(remove_file, folder)  # where it stays empty
        stack.enter_context(writing(folder))
        # Without the lock, the first of two writers to end would remove the other's files.
        stack.enter_context(writer_lock(new))
        stack.callback(new.with_suffix(".lock").unlink, missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)  # of a killed write
        stack.callback(shutil.rmtree, new, ignore_errors=True)
        new.mkdir()
        yield new
        for name in ("tables", "figures", SUMMARY, PAGE):
            shutil.rmtree(folder / name, ignore_errors=True)
            os.replace(new / name, folder / name)


# --- The summary ------------------------------------------------------------------------------------------------------


def _summary(analysis: Analysis, settings: Mapping[str, str]) -> dict[str, Any]:
    comparisons = []
    for comparison in analysis.comparisons:
        counts = {
            "kind": comparison.kind,
            "language": comparison.language,
            "side": comparison.side,
            "items": len(comparison.rows),
            "clear": comparison.clear,
        }
        comparisons.append(counts)
    summary = {
        "made_by": MADE_BY,
        "made_with": settings,
        "splits": [split.fingerprint for split in analysis.splits],
        "not_measured": analysis.unmeasured,
        "notes": analysis.notes,
        "languages": {part.language: _summarize(part) for part in analysis.split.languages},
        "comparisons": comparisons,
    }
    return dict(to_jsonable_python(summary))


def _summarize(part: LanguageAnalysis) -> dict[str, Any]:
    lengths = []
    for summary in part.lengths.summaries:
        if summary.group == "all":
            values = {
                "side": summary.side,
                "measure": summary.measure,
                "texts": summary.n,
                "mean": summary.mean,
                "median": summary.median,
            }
            lengths.append(values)
    grid = part.coverage
    return {
        "scenarios": part.scenarios,
        "lengths": lengths,
        "words": _summarize_counts(part.words),
        "pairs": _summarize_counts(part.pairs),
        "diversity": part.diversity,
        "coverage": {
            "filled": grid.filled,
            "total": len(grid.cells),
            "evenness": grid.evenness,
        },
    }


def _summarize_counts(counts: Mapping[Side, Sequence[Any]]) -> dict[Side, Any]:
    """Return of each side how many words or pairs differ, and the most frequent ones."""
    summaries = {}
    for side, rows in counts.items():
        summaries[side] = {"distinct": len(rows), "most": rows[:MOST_FREQUENT]}
    return summaries


def made_with(analysis: Analysis) -> dict[str, str]:
    """List what was analysed and with which settings and versions, as texts by name."""
    from h2htalk.text.tokens import tokenizer_signature

    spec = analysis.spec
    languages = [part.language for part in analysis.split.languages]
    settings = {"split": _describe_split(analysis.split)}
    if analysis.compare_with:
        settings["compared with"] = _describe_split(analysis.compare_with)
    limit = "none" if spec.limit is None else f"{spec.limit:,} scenarios, stratified"
    settings |= {
        "languages": ", ".join(languages),
        "limit": limit,
        "words": tokenizer_signature(),
        "model tokens": analysis.tokenizer or "not counted",
    }
    for model in analysis.parsers:
        settings[f"parser {model.language}"] = f"{model.name} {model.version}"
    settings["embedder"] = analysis.embedder or "none"
    for language in languages:
        font = find_font(language)
        settings[f"font {language}"] = f"{font.name} ({font.source})"
    settings["seed"] = str(spec.seed)
    settings["h2htalk"] = analysis.package_version
    versions = installed_versions(*_PACKAGES)
    for package in _PACKAGES:
        settings[package] = versions.get(package, "not installed")
    return settings


def _describe_split(split: SplitAnalysis) -> str:
    if split.selected == split.total:
        part = "whole"
    else:
        part = f"{split.selected:,} of {split.total:,} scenarios, {split.analysed}"
    return f"{split.name} {split.version}, fingerprint {split.fingerprint}, {part}"

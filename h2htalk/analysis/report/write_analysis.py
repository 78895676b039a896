"""Write an analysis as a folder: tables, figures, the page, and a summary for other programs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.analyze import Analysis, LanguageAnalysis, SplitFacts
from h2htalk.analysis.figures import save_figure
from h2htalk.analysis.report.figure_specs import FigureSpec, figure_specs
from h2htalk.analysis.report.html_page import page_text
from h2htalk.analysis.report.tables import histograms_table
from h2htalk.analysis.verb_nouns.parsers import INSTALL
from h2htalk.data.analysis_folder import MADE_BY, PAGE, SUMMARY, replaced, require_folder
from h2htalk.data.files import write_json, write_text
from h2htalk.errors import MissingExtraError
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.tables import Table
from h2htalk.version import installed_versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = ("svg", "pdf", "png")
_MOST_FREQUENT = 20  # words and pairs that the summary names


def require_output(folder: Path) -> None:
    """Refuse, before the work begins, a folder that `write_analysis` would refuse after it.

    Raises:
        ConfigError: the folder holds other things, or cannot be written.
        MissingExtraError: a package that draws is not installed.
    """
    require_folder(folder)
    if not all(map(find_spec, ("matplotlib", "wordcloud"))):
        raise MissingExtraError("drawing figures", INSTALL)


def write_analysis(analysis: Analysis, folder: Path, processes: int = 1) -> Path:
    """Write tables, figures, `summary.json` and `index.html`; return the page, which is written last.

    An earlier analysis in the folder is replaced file by file; a reader never sees half a file.

    Args:
        processes: that draw, including this one. With more than one, a script must call this under
            `if __name__ == "__main__":`.

    Raises:
        ConfigError: the folder holds other things.
        DataError: it cannot be written, or the disk is full.
        MissingExtraError: matplotlib or wordcloud is not installed.
    """
    shown = figure_specs(analysis)
    tables = {spec.table.name: spec.table for spec in shown}
    for part in analysis.split.languages:
        table = histograms_table(part.language, part.lengths)
        tables[table.name] = table
    with replaced(folder) as new:
        for table in tables.values():
            write_text(new / "tables" / f"{table.name}.csv", table.to_csv())
        pictures = _draw_all(shown, new / "figures", min(processes, usable_cores()))
        made = made_with(analysis)
        write_text(new / PAGE, page_text(analysis, shown, pictures, made))
        write_json(new / SUMMARY, _summary(analysis, made, _files(shown, list(tables.values()))))
    return folder / PAGE


def _draw_all(shown: Sequence[FigureSpec], folder: Path, processes: int) -> dict[str, str]:
    """Draw and save the figures; return each one's SVG by its name."""
    drawn: set[str] = set()
    with Progress("drawing", len(shown)) as progress, contextlib.ExitStack() as stack:
        elsewhere = _draw_elsewhere(stack, shown, folder, processes - 1)
        # From the end, since the other processes begin at the front.
        for spec in reversed(shown):
            future = elsewhere.get(spec.name)
            if future is None or future.cancel():
                _draw(spec.draw, folder, spec.name)
                drawn.add(spec.name)
                progress.advance()
        for name, future in elsewhere.items():
            if name not in drawn:
                future.result()
                progress.advance()
    return {spec.name: (folder / f"{spec.name}.svg").read_text(encoding="utf-8") for spec in shown}


def _draw_elsewhere(
    stack: contextlib.ExitStack, shown: Sequence[FigureSpec], folder: Path, processes: int
) -> dict[str, Future[None]]:
    if processes < 1:
        return {}
    pool = stack.enter_context(ProcessPool(processes))
    return {spec.name: pool.submit(_draw, spec.draw, folder, spec.name) for spec in shown}


def _draw(draw: Callable[[], Figure], folder: Path, name: str) -> None:
    """Draw a figure and save it."""
    # With a read-only home matplotlib would warn in each process that its cache cannot be written.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    save_figure(draw(), folder, name)


def _files(shown: Sequence[FigureSpec], tables: Sequence[Table]) -> list[str]:
    figures = [f"figures/{spec.name}.{kind}" for spec in shown for kind in FORMATS]
    return sorted([PAGE, *(f"tables/{table.name}.csv" for table in tables), *figures])


def _summary(analysis: Analysis, made: dict[str, str], files: list[str]) -> dict[str, Any]:
    return {
        "made_by": MADE_BY,
        "made_with": made,
        "splits": [one.facts.fingerprint for one in (analysis.split, analysis.compare_with) if one],
        "not_measured": list(analysis.unmeasured),
        "languages": {part.language: _language(part) for part in analysis.split.languages},
        "comparisons": [
            {
                "kind": c.kind,
                "language": c.language,
                "side": c.side,
                "items": len(c.rows),
                "clear": c.clear,
                "total_a": c.a_total,
                "total_b": c.b_total,
            }
            for c in analysis.comparisons
        ],
        "files": files,
    }


def _language(part: LanguageAnalysis) -> dict[str, Any]:
    return {
        "scenarios": part.scenarios,
        "lengths": [
            {"side": s.side, "measure": s.measure, "texts": s.n, "mean": s.mean, "median": s.median}
            for s in part.lengths.summaries
            if s.group == "all"
        ],
        "words": {
            side: {"distinct": len(words), "most": [[w.word, w.count] for w in words[:_MOST_FREQUENT]]}
            for side, words in part.words.items()
        },
        "pairs": {
            side: {
                "distinct": len(pairs),
                "most": [[p.verb, p.noun, p.count] for p in pairs[:_MOST_FREQUENT]],
            }
            for side, pairs in part.pairs.items()
        },
        "diversity": [
            {
                "side": d.side,
                "distinct_sampled": d.distinct_sampled,
                "self_bleu": d.self_bleu,
                "spread": d.spread,
            }
            for d in part.diversity
        ],
        "coverage": {
            "filled": part.coverage.filled,
            "total": part.coverage.total,
            "evenness": part.coverage.evenness,
        },
    }


# Packages whose version can change a figure.
_PACKAGES = ("spacy", "lemminflect", "jieba", "sacrebleu", "tokenizers", "wordcloud", "matplotlib")


def made_with(analysis: Analysis) -> dict[str, str]:
    """List what was analysed and with which settings and versions, as texts by name."""
    from h2htalk.text.tokens import tokenizer_signature

    spec = analysis.spec
    parts = [part.language for part in analysis.split.languages]
    return {
        "split": _split_text(analysis.split.facts),
        **({"compared with": _split_text(analysis.compare_with.facts)} if analysis.compare_with else {}),
        "languages": ", ".join(parts),
        "limit": "none" if spec.limit is None else f"{spec.limit:,} scenarios, stratified",
        "words": tokenizer_signature(),
        "model tokens": analysis.tokenizer or "not counted",
        **{f"parser {model.language}": f"{model.name} {model.version}" for model in analysis.parsers},
        "embedder": analysis.embedder or "none",
        **{f"font {language}": font_name(language) for language in parts},
        "seed": str(spec.seed),
        "h2htalk": analysis.package_version,
        **{package: installed_versions(package).get(package, "not installed") for package in _PACKAGES},
    }


def _split_text(facts: SplitFacts) -> str:
    analysed = sum(facts.scenarios.values())
    whole = "whole" if analysed == facts.total else f"{analysed:,} of {facts.total:,} scenarios, {facts.analysed}"
    return f"{facts.name} {facts.version}, fingerprint {facts.fingerprint}, {whole}"


def font_name(language: str) -> str:
    """Name the font of a language's figures, and its source."""
    from h2htalk.analysis.figures.fonts import find_font

    font = find_font(language)
    return f"{font.name} ({font.source})"

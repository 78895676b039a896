"""Write an analysis as a folder (tables, figures, the page, a summary for other programs) and as a screen of text.

The page is one HTML file that needs no network, no server and no script. Its policy is that of
`h2htalk.text.html_pages`; the pictures are SVG in image elements, where neither scripts nor links work.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from h2htalk.analysis.analyze import Analysis, SplitAnalysis
from h2htalk.analysis.figures.style import FORMATS, find_font, save_figure
from h2htalk.analysis.measures.lengths import MEASURES
from h2htalk.analysis.measures.log_odds import Comparison
from h2htalk.analysis.measures.scenario_texts import SIDES
from h2htalk.analysis.report.figure_specs import (
    MEASURE_ORDER,
    FigureSpec,
    figure_specs,
    histograms_table,
    split_names,
)
from h2htalk.data.files import (
    read_json_object,
    remove_file,
    write_json,
    write_text,
    writer_lock,
    writing,
)
from h2htalk.data.languages import find_language
from h2htalk.data.run_folder import MADE_BY, PAGE, SUMMARY
from h2htalk.errors import (
    ConfigError,
    H2HTalkError,
    MissingExtraError,
    counted,
    listed,
    quoted,
    shorten,
)
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.parsing.parsing import INSTALL
from h2htalk.text.tables import Table
from h2htalk.version import installed_versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_FREQUENT = 20  # words and pairs that the summary names
_MOST = 8  # words or pairs in a line
_LONGEST = 40  # characters of one: text labelled with the wrong language has no short words
_NEW = ".analysis"  # of the folder and the lock of an unfinished or killed write
_PARTS = {"diversity": "Diversity", "differences": "Differences"}
_HEADING = 40  # characters


def require_output(folder: Path) -> None:
    """Refuse, before the work begins, a folder that `write_analysis` would refuse after it.

    Raises ConfigError where it is neither new nor empty nor the folder of an earlier analysis, or cannot be written,
    MissingExtraError where a package that draws is not installed.
    """
    try:
        nearest = next(
            path for path in (folder, *folder.absolute().parents) if os.path.lexists(path)
        )
        others = sorted(quoted(name) for name in os.listdir(nearest) if not name.startswith(_NEW))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ConfigError(f"--out {folder}: {nearest} cannot be written to; name another one")
    except OSError as error:
        raise ConfigError(f"--out {folder}: {error.strerror or error}; name another one") from error
    if nearest == folder and others:
        made_by = None
        with suppress(FileNotFoundError, H2HTalkError):
            made_by = read_json_object(folder / SUMMARY).get("made_by")
        if made_by != MADE_BY:
            advice = "name a new folder, or that of an earlier analysis"
            raise ConfigError(f"--out {folder} holds other things ({listed(others, 3)}); {advice}")
    if not all(map(find_spec, ("matplotlib", "wordcloud"))):
        raise MissingExtraError("drawing figures", INSTALL)


def write_analysis(analysis: Analysis, folder: Path, processes: int = 1) -> Path:
    """Write tables, figures, `summary.json` and `index.html`; return the page, which is written last.

    An earlier analysis in the folder is replaced; a reader never sees half a file. With more than one process drawing,
    a script must call this under `if __name__ == "__main__":`. Raises what `require_output` does, and DataError where
    the folder cannot be written, another process is writing it, or the disk is full.
    """
    shown = figure_specs(analysis)
    tables = [
        *(spec.table for spec in shown),
        *(histograms_table(part) for part in analysis.split.languages),
    ]
    draw = {spec.name: spec.draw for spec in shown if spec.draw}
    processes = min(processes, usable_cores())
    with replaced(folder) as new:
        for table in {table.name: table for table in tables}.values():
            write_text(new / "tables" / f"{table.name}.csv", table.to_csv())
        with Progress("drawing", len(draw)) as progress, ExitStack() as stack:
            mapped = stack.enter_context(ProcessPool(processes)).map if processes > 1 else map
            for _ in mapped(_draw, draw.values(), repeat(new / "figures"), draw):
                progress.advance()
        pictures = {
            name: (new / "figures" / f"{name}.svg").read_text(encoding="utf-8") for name in draw
        }
        made = made_with(analysis)
        write_text(new / PAGE, page_text(analysis, shown, pictures, made))
        write_json(new / SUMMARY, _summary(analysis, made))
    return folder / PAGE


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
    new = folder / _NEW
    with ExitStack() as stack:
        if not os.path.lexists(folder):
            stack.callback(remove_file, folder)  # where it stays empty
        stack.enter_context(writing(folder))
        stack.enter_context(
            writer_lock(new)
        )  # the first of two writers to end would remove the other's files
        stack.callback(new.with_suffix(".lock").unlink, missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)  # of a killed write
        stack.callback(shutil.rmtree, new, ignore_errors=True)
        new.mkdir()
        yield new
        for name in ("tables", "figures", SUMMARY, PAGE):
            shutil.rmtree(folder / name, ignore_errors=True)
            os.replace(new / name, folder / name)


# --- The page ---------------------------------------------------------------------------------------------------------


def page_text(
    analysis: Analysis,
    shown: Sequence[FigureSpec],
    pictures: Mapping[str, str],
    made: Mapping[str, str],
) -> str:
    """Render the page of figures in this order, every text made printable.

    `pictures` are the figures' SVGs by name, `made` the rows of "How it was made": settings as texts by name.
    """
    split = analysis.split
    names = split_names(analysis)
    counts = " and ".join(
        f"{n:,} {find_language(language).name}" for language, n in split.scenarios.items()
    )
    subtitle = f"version {split.version}: {counts} scenario{'' if sum(split.scenarios.values()) == 1 else 's'}"
    if analysis.compare_with:
        subtitle += f", compared with {analysis.compare_with.name} {analysis.compare_with.version}"
    tiles: list[tuple[str, ...]] = []
    for part in analysis.split.languages:
        name = find_language(part.language).name
        grid = part.coverage
        tiles.append((name, *counted(part.scenarios, "scenario").split()))
        for s in part.lengths.summaries:
            if (s.group, s.measure) == ("all", "words"):
                tiles.append(
                    (f"{name} {s.side}s", f"{s.median:,.0f}", f"words, median; mean {s.mean:,.1f}")
                )
        share = f"{100 * grid.filled / max(1, len(grid.cells)):.0f} %"
        tiles.append(
            (f"{name} grid", share, f"{grid.filled:,} of {len(grid.cells):,} cells hold a scenario")
        )
    parts = [
        {
            "id": part,
            "title": _PARTS.get(part) or find_language(part).name,
            "groups": [
                {
                    "title": group,
                    "figures": [
                        _figure(spec, pictures.get(spec.name, ""), names) for spec in of_group
                    ],
                }
                for group, of_group in groupby(of_part, key=lambda spec: spec.group)
            ],
        }
        for part, of_part in groupby(shown, key=lambda spec: spec.part)
    ]
    notes = [f"{printable(text)}." for text in analysis.notes]
    view = {
        "split": printable(split.name),
        "subtitle": printable(subtitle),
        "tiles": [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles],
        "parts": parts,
        "unmeasured": [f"Not measured: {printable(text)}." for text in analysis.unmeasured],
        "notes": notes,
        "made": [(printable(key), printable(value)) for key, value in made.items()],
    }
    return render_page(files("h2htalk.analysis.report") / "page", view, pictures=True)


def _figure(spec: FigureSpec, picture: str, names: tuple[str, str]) -> dict[str, Any]:
    # A split's name over a column of numbers keeps both ends: two names may begin alike.
    short = [
        name if len(name) <= _HEADING else f"{name[:27].rstrip()}…{name[-12:].lstrip()}"
        for name in names
    ]
    headings = dict(zip(("count_a", "count_b"), short, strict=True))
    header = [headings.get(h, h.replace("_", " ")) for h in spec.shown.header]
    total = len(spec.shown.rows)
    rows = spec.shown.rows[: spec.most]
    return {
        "name": spec.name,
        "title": printable(spec.title),
        "note": printable(spec.note),
        "alt": printable(f"{spec.title}. {spec.content} {spec.note}".strip()),
        # A picture of its own, whose ids and styles stay within it. A line end in an address is three characters.
        "source": picture
        and "data:image/svg+xml," + quote(" ".join(picture.split()), safe=" !$()+*,-./:;=?@_~"),
        "files": [(kind.upper(), f"figures/{spec.name}.{kind}") for kind in FORMATS if picture],
        "table": Table("", header, rows).to_html(spec.language) if rows else "",
        "rows": f"{len(rows):,} of {total:,} rows" if len(rows) < total else f"{total:,} rows",
        "link": f"tables/{spec.table.name}.csv",
    }


# --- The summary ------------------------------------------------------------------------------------------------------


def _summary(analysis: Analysis, made: dict[str, str]) -> dict[str, Any]:
    comparisons = [
        {
            "kind": one.kind,
            "language": one.language,
            "side": one.side,
            "items": len(one.rows),
            "clear": one.clear,
        }
        for one in analysis.comparisons
    ]
    languages = {}
    for part in analysis.split.languages:
        grid = part.coverage
        languages[part.language] = {
            "scenarios": part.scenarios,
            "lengths": [
                {
                    "side": s.side,
                    "measure": s.measure,
                    "texts": s.n,
                    "mean": s.mean,
                    "median": s.median,
                }
                for s in part.lengths.summaries
                if s.group == "all"
            ],
            **{
                name: {
                    side: {"distinct": len(rows), "most": rows[:_MOST_FREQUENT]}
                    for side, rows in counts.items()
                }
                for name, counts in (("words", part.words), ("pairs", part.pairs))
            },
            "diversity": part.diversity,
            "coverage": {
                "filled": grid.filled,
                "total": len(grid.cells),
                "evenness": grid.evenness,
            },
        }
    summary = {
        "made_by": MADE_BY,
        "made_with": made,
        "splits": [one.fingerprint for one in (analysis.split, analysis.compare_with) if one],
        "not_measured": analysis.unmeasured,
        "notes": analysis.notes,
        "languages": languages,
        "comparisons": comparisons,
    }
    return dict(to_jsonable_python(summary))


# Packages whose version can change a figure.
_PACKAGES = ("spacy", "lemminflect", "jieba", "sacrebleu", "tokenizers", "wordcloud", "matplotlib")


def made_with(analysis: Analysis) -> dict[str, str]:
    """List what was analysed and with which settings and versions, as texts by name."""
    from h2htalk.text.tokens import tokenizer_signature

    spec = analysis.spec
    parts = [part.language for part in analysis.split.languages]
    versions = installed_versions(*_PACKAGES)
    fonts = {language: find_font(language) for language in parts}
    return {
        "split": _split_text(analysis.split),
        **({"compared with": _split_text(analysis.compare_with)} if analysis.compare_with else {}),
        "languages": ", ".join(parts),
        "limit": "none" if spec.limit is None else f"{spec.limit:,} scenarios, stratified",
        "words": tokenizer_signature(),
        "model tokens": analysis.tokenizer or "not counted",
        **{
            f"parser {model.language}": f"{model.name} {model.version}"
            for model in analysis.parsers
        },
        "embedder": analysis.embedder or "none",
        **{f"font {language}": f"{font.name} ({font.source})" for language, font in fonts.items()},
        "seed": str(spec.seed),
        "h2htalk": analysis.package_version,
        **{package: versions.get(package, "not installed") for package in _PACKAGES},
    }


def _split_text(split: SplitAnalysis) -> str:
    analysed = sum(split.scenarios.values())
    whole = (
        "whole"
        if analysed == split.total
        else f"{analysed:,} of {split.total:,} scenarios, {split.analysed}"
    )
    return f"{split.name} {split.version}, fingerprint {split.fingerprint}, {whole}"


# --- The terminal -----------------------------------------------------------------------------------------------------


def overview(analysis: Analysis) -> str:
    """List scenarios, lengths, frequent words and pairs, diversity, coverage, and what was not measured."""
    split = analysis.split
    whole = (
        "" if sum(split.scenarios.values()) == split.total else f", of {split.total:,} in the split"
    )
    lines = [
        f"{split.name} {split.version}: {counted(sum(split.scenarios.values()), 'scenario')}{whole}"
    ]
    for part in analysis.split.languages:
        rows = []
        for measure in MEASURE_ORDER:
            lengths = [
                f"{s.side}s mean {s.mean:,.2f}, median {s.median:,.2f}"
                for s in part.lengths.summaries
                if (s.group, s.measure) == ("all", measure)
            ]
            if lengths:
                rows += [(MEASURES[measure], "; ".join(lengths))]
        for side in SIDES:
            rows.append(
                (
                    f"words, {side}s",
                    _listed(f"{w.word} {w.count:,}" for w in part.words[side][:_MOST]),
                )
            )
        for side in SIDES:
            pairs = [
                (shorten(f"{p.verb} {p.noun}", _LONGEST), p.count) for p in part.pairs[side][:_MOST]
            ]
            rows.append((f"pairs, {side}s", _listed(f"{pair} {count:,}" for pair, count in pairs)))
        for row in part.diversity:
            values = (row.distinct_sampled[1], row.self_bleu)
            distinct, self_bleu = (
                "not measured" if value is None else f"{value:.3f}" for value in values
            )
            spread = "" if row.spread is None else f", spread {row.spread:.3f}"
            rows.append(
                (f"variety, {row.side}s", f"distinct-2 {distinct}, self-BLEU {self_bleu}{spread}")
            )
        rows.append(
            (
                "grid",
                f"{part.coverage.filled:,} of {len(part.coverage.cells):,} cells hold a scenario",
            )
        )
        lines += ["", f"{find_language(part.language).name}, {counted(part.scenarios, 'scenario')}"]
        lines += [f"  {name:<20} {text}" for name, text in rows]
    if analysis.compare_with is not None:
        a, b = split_names(analysis)
        lines += ["", f"{a} compared with {b}", *map(_compared, analysis.comparisons)]
    if analysis.unmeasured:
        lines += ["", *(f"not measured: {text}" for text in analysis.unmeasured)]
    if analysis.notes:
        lines.append("")
        lines += [f"note: {text}" for text in analysis.notes]
    return "\n".join(lines)


def _compared(compared: Comparison) -> str:
    """Count the differences that are clear with all tested at once, and name the strongest of each direction."""
    side = f", {compared.side}s" if compared.side else ""
    what = f"  {find_language(compared.language).name} {compared.kind}{side}"
    rows = [row for row in compared.rows if row.clear]
    if not rows:
        return f"{what}: {len(compared.rows):,} compared, no clear difference"
    more = _listed([shorten(row.item, _LONGEST) for row in rows if row.log_odds > 0][: _MOST // 2])
    less = _listed(
        [shorten(row.item, _LONGEST) for row in reversed(rows) if row.log_odds < 0][: _MOST // 2]
    )
    return f"{what}: {len(rows):,} of {len(compared.rows):,} differ; more {more}; less {less}"


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"

"""`h2htalk analyze`: lengths, words, verb-noun pairs, diversity and coverage of a split."""

from __future__ import annotations

from typing import Annotated

import typer

from h2htalk.cli.options import SPLIT_HELP, OutOption
from h2htalk.cli.output import say
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.splits import list_splits
from h2htalk.errors import ConfigError


def analyze(
    split: Annotated[str, typer.Argument(help=SPLIT_HELP)],
    out: OutOption,
    compare_with: Annotated[str | None, typer.Option(help="A split to compare it with.")] = None,
    language: Annotated[str | None, typer.Option(help=f"{', '.join(LANGUAGES)}; default: all.")] = None,
    limit: Annotated[int | None, typer.Option(help="A stratified sample of this many scenarios.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="A tokenizer.json, or embedded (the default where installed).")
    ] = None,
    spacy_model: Annotated[
        list[str] | None, typer.Option(help="A spaCy pipeline to parse with; may be repeated.")
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="Measures the spread: bge-m3, minilm (English), none, or a name.")
    ] = "none",
    processes: Annotated[int | None, typer.Option(help="Processes that parse and draw; default: one a core.")] = None,
) -> None:
    """Measure a split: lengths, words, verb-noun pairs, diversity, coverage."""
    from h2htalk.analysis.analyze import AnalyzeSpec
    from h2htalk.analysis.analyze import analyze as run
    from h2htalk.analysis.report.terminal import overview
    from h2htalk.analysis.report.write_analysis import require_output, write_analysis
    from h2htalk.parallel import usable_cores

    _require_name("SPLIT", split)
    _require_name("--compare-with", compare_with)
    require_output(out)
    models = tuple(spacy_model or ())
    analysis = run(AnalyzeSpec(split, compare_with, language, limit, tokenizer, models, embedder, processes))
    page = write_analysis(analysis, out, processes or usable_cores())
    say(f"{overview(analysis)}\n\npage: {page.resolve()}")


def _require_name(option: str, split: str | None) -> None:
    if split is not None and not split.strip():
        bundled = ", ".join(list_splits())
        raise ConfigError(f"{option} is empty: name a bundled split ({bundled}), a folder or a file")

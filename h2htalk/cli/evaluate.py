"""`h2htalk evaluate`: generate a model's answers and score them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import h2htalk
from h2htalk.chat.engines import ENGINES
from h2htalk.cli.options import EMBEDDER_HELP, SPLIT_HELP, VerboseOption, finish
from h2htalk.cli.output import say
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, quoted


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help=f"ENGINE:NAME, with ENGINE one of {', '.join(ENGINES)}, baseline.")
    ] = None,
    split: Annotated[str | None, typer.Option(help=SPLIT_HELP)] = None,
    out: Annotated[str | None, typer.Option(help="The run folder; an unfinished run is continued.")] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A TOML file with any of these settings; options override it.")
    ] = None,
    language: Annotated[str | None, typer.Option(help=f"{', '.join(LANGUAGES)}; all when left out.")] = None,
    subtask: Annotated[list[str] | None, typer.Option(help="A subtask; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(help="A stratified sample of this many scenarios.")] = None,
    sap: Annotated[str | None, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = None,
    embedder: Annotated[str | None, typer.Option(help=EMBEDDER_HELP)] = None,
    rouge: Annotated[str | None, typer.Option(help="f1 (the authors' code) or recall (the paper's text).")] = None,
    contracts: Annotated[str | None, typer.Option(help="none: --prompts ask for another form; check none.")] = None,
    samples: Annotated[int | None, typer.Option(help="Answers an item; above 1 needs a temperature.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus sampling.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Reply budget; the task's own when left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed of the sampling.")] = None,
    prompts: Annotated[str | None, typer.Option(help="A folder of templates that replace bundled ones.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests in flight.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds an attempt may take.")] = None,
    baselines: Annotated[
        bool | None,
        typer.Option("--baselines/--no-baselines", help="Score trivial answers next to the model."),
    ] = None,
    model_sampling: Annotated[
        bool | None,
        typer.Option("--model-sampling", help="Leave temperature, top-p and seed to the model."),
    ] = None,
    thinking: Annotated[
        int | None, typer.Option(help="Tokens of reasoning besides the reply; 0 switches it off.")
    ] = None,
    engine_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE, an option of the engine itself; may be repeated."),
    ] = None,
    download: Annotated[
        bool | None, typer.Option("--download", help="Fetch an hf: model from the Hub if it is not cached.")
    ] = None,
    batch: Annotated[
        bool | None,
        typer.Option("--batch", help="Send batch jobs (openai:, anthropic:)."),
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="US dollars that the run may cost in all.")] = None,
    prices: Annotated[str | None, typer.Option(help="A price file that replaces bundled prices.")] = None,
    accept_endpoint: Annotated[
        bool | None,
        typer.Option("--accept-endpoint", help="Continue a run that another URL answered; every table says so."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the number of calls and their cost; send and write nothing."),
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Score a model on a split: generate, score, report. The same command again resumes."""
    # Before anything else is local: exactly the options.
    other = ("spec", "subtask", "engine_option", "dry_run", "verbose")
    given = {k: v for k, v in locals().items() if k not in (*other, "other") and v is not None}
    if subtask:
        given["subtasks"] = tuple(subtask)
    if engine_option:
        given["engine_options"] = engine_pairs(engine_option)
    from h2htalk.benchmark.settings import read_spec

    parsed = read_spec(spec, given) if spec else h2htalk.EvaluateSpec.from_dict(given, "command line")
    if dry_run:
        from h2htalk.benchmark.cost_estimate import estimate

        say(estimate(parsed))
        return
    try:
        summary = h2htalk.evaluate(parsed)
    except KeyboardInterrupt:
        say(f"stopped; finished answers are stored in {parsed.out}: the same command continues", err=True)
        raise
    finish(summary, parsed.out_path, verbose)


def engine_pairs(words: list[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` arguments into a table."""
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--engine-option {quoted(word)}: write KEY=VALUE, such as dtype=bfloat16")
        if key.strip() in pairs:
            raise ConfigError(f"--engine-option: {key.strip()} is given twice")
        pairs[key.strip()] = value.strip()
    return pairs

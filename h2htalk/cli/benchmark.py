"""Commands on models, runs and suites: evaluate, merge, launch, score, report, costs, analyze, prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Exit, Option

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.cli import options
from h2htalk.cli.output import end_on_sigterm, say
from h2htalk.errors import ConfigError

with options.lazy_imports():
    from h2htalk import parallel
    from h2htalk.analysis.report import overview, write_analysis
    from h2htalk.benchmark import evaluate as evaluation
    from h2htalk.benchmark import score_run
    from h2htalk.benchmark.prompts import prompt_set
    from h2htalk.benchmark.report import cost_tables, table2, table_files
    from h2htalk.scale import attempts, ray_cluster, shards, slurm
    from h2htalk.scale import merge as merging
    from h2htalk.scale import suite as scaling

SAME_AS_RUN = "The run's own when left out."
Submit = Annotated[
    bool, Option("--submit", help="Submit the jobs; else their commands are printed.")
]
Suite = Annotated[Path, Argument(help="A TOML file of many runs, as of `evaluate --suite`.")]


@options.with_options(EvaluateSpec)
def evaluate(
    model: Annotated[str | None, Argument(help=f"{options.MODEL}, baseline.")] = None,
    split: Annotated[str | None, Option(help=options.SPLIT)] = None,
    out: Annotated[
        str | None, Option(help="The run folder; an unfinished run is continued.")
    ] = None,
    spec: Annotated[
        Path | None, Option(help="A TOML file with any of these settings; options override it.")
    ] = None,
    shard: Annotated[
        str | None, Option(help="3/8: ask this part of the items; `h2htalk merge` joins them.")
    ] = None,
    suite: Annotated[
        Path | None, Option(help="A TOML file of many runs, instead of a model and --split.")
    ] = None,
    run: Annotated[
        list[str] | None, Option(help="Of a suite: only this run; may be repeated.")
    ] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    verbose: options.Verbose = False,
    **settings: Any,
) -> None:
    """Score a model on a split: generate, score, report. The same command again resumes."""
    for name, value in (("model", model), ("split", split), ("out", out)):
        if value is not None:
            settings[name] = value
    if shard:
        if dry_run or watch:
            raise ConfigError(
                "--shard cannot be combined with --dry-run or --watch, which are of the whole run"
            )
        end_on_sigterm()
    if suite is not None:
        if settings or spec or watch:
            raise ConfigError("--suite: the file holds all settings; leave the others out")
        raise Exit(scaling.run_suite(suite, run or (), shard, dry_run, say))
    if run:
        raise ConfigError("--run: names a run of a --suite")
    if spec:
        parsed = read_spec(spec, settings)
    else:
        parsed = EvaluateSpec.from_dict(settings, "")
    if dry_run:
        say(evaluation.estimate(parsed))
    elif shard:
        say(shards.evaluate_shard(parsed, attempts.Shard.parse(shard)))
    else:
        options.finish(
            options.watched(watch, parsed.out_path, h2htalk.evaluate, parsed),
            parsed.out_path,
            verbose,
        )


def merge(
    places: Annotated[
        list[str] | None, Argument(help="Folders or URLs of shards.", metavar="SHARD...")
    ] = None,
    out: Annotated[Path | None, Option(help="The run folder to write.")] = None,
    suite: Annotated[
        Path | None, Option(help="Merge the runs of a suite that are ready instead.")
    ] = None,
    prompts: options.ShardPrompts = None,
    verbose: options.Verbose = False,
) -> None:
    """Merge the shards of a run into the run that one machine would have made. Exit code 3: some are missing."""
    if suite is not None:
        if places or out or prompts:
            raise ConfigError(
                "--suite: the file names shards, runs and prompts; leave the others out"
            )
        raise Exit(scaling.merge_suite(suite, say))
    if not places or out is None:
        raise ConfigError("merge: name the shards and --out, or a --suite")
    options.finish(merging.merge(places, out, prompts), out, verbose)


def launch_slurm(suite: Suite, submit: Submit = False) -> None:
    """Write the Slurm jobs of a suite into OUT/launch, for each shard that is not finished, and one that merges."""
    raise Exit(slurm.launch_slurm(suite, submit, say))


def launch_ray(suite: Suite, ray_address: options.RayAddress = "") -> None:
    """Run the unfinished shards of a suite as Ray tasks, and merge its runs. Exit code 3: some are missing."""
    raise Exit(ray_cluster.launch(suite, ray_address, say))


def launch_status(suite: Suite) -> None:
    """Show the finished shards of a suite, and the jobs of those that are missing. Exit code 3: not all is merged."""
    raise Exit(slurm.launch_status(suite, say))


def launch_stop(suite: Suite) -> None:
    """Cancel the Slurm jobs of a suite, merges first."""
    raise Exit(slurm.launch_stop(suite, say))


def score(
    run: options.Run,
    embedder: Annotated[str | None, Option(help=f"{options.EMBEDDER} {SAME_AS_RUN}")] = None,
    rouge: Annotated[str | None, Option(help=f"f1 or recall. {SAME_AS_RUN}")] = None,
    references: options.References = None,
    filtered: options.Filtered = None,
    prompts: options.RunPrompts = None,
    verbose: options.Verbose = False,
) -> None:
    """Score a run's stored responses again; the model is not asked."""
    options.finish(
        score_run.score(run, embedder, rouge, references, filtered, prompts), run, verbose
    )


def report(
    run: options.Run,
    format: options.TableFormat = "terminal",
    prompts: options.RunPrompts = None,
    verbose: options.Verbose = False,
) -> None:
    """Print the table of a scored run; `--format terminal` also writes its tables and page again."""
    if format == "terminal":
        options.finish(score_run.report(run, prompts), run, verbose)
    if prompts is not None:
        raise ConfigError(
            f"--prompts: --format {format} prints figures, which need no prompts; leave one of them out"
        )
    summary = h2htalk.load_run(run).summary
    typer.echo(table_files.table_text(table2.model_rows(summary), format), nl=False)
    raise Exit(3 if summary.incomplete else 0)


def costs(
    run: options.Run,
    list_calls: Annotated[bool, Option("--list-calls", help="List every call.")] = False,
    format: options.DataFormat = "terminal",
) -> None:
    """Show what a run, study or workspace paid: by stage and in total."""
    say(cost_tables.costs_text(run, list_calls, format))


def analyze(
    split: options.Split,
    out: options.Out,
    compare_with: Annotated[str | None, Option(help="A split to compare it with.")] = None,
    language: Annotated[str | None, Option(help=options.LANGUAGE)] = None,
    limit: Annotated[int | None, Option(help="A stratified sample of this many scenarios.")] = None,
    tokenizer: Annotated[
        str | None, Option(help="A tokenizer.json, which counts model tokens.")
    ] = None,
    spacy_model: Annotated[
        list[str] | None, Option(help="A spaCy pipeline to parse with; may be repeated.")
    ] = None,
    embedder: Annotated[str, Option(help=f"Measures the spread: {options.EMBEDDER}")] = "none",
    processes: Annotated[
        int | None, Option(help="Processes that parse and draw; default: one a core.")
    ] = None,
) -> None:
    """Measure a split: lengths, words, verb-noun pairs, diversity, coverage."""
    write_analysis.require_output(out)
    models = tuple(spacy_model or ())
    spec = h2htalk.AnalyzeSpec(
        split, compare_with, language, limit, tokenizer, models, embedder, processes
    )
    analysis = h2htalk.analyze(spec)
    page = write_analysis.write_analysis(analysis, out, processes or parallel.usable_cores())
    say(f"{overview.overview(analysis)}\n\npage: {page.resolve()}")


def prompts_show(
    scenario_id: Annotated[str | None, Argument(help="A scenario's id, or all.")] = None,
    split: options.SplitOption = "mini",
    sap: Annotated[str, Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = "full",
    prompts: Annotated[
        Path | None, Option(help="A folder of templates that replace bundled ones.")
    ] = None,
    all_scenarios: Annotated[
        bool, Option("--all", help="Print every scenario as JSONL: id, messages.")
    ] = False,
) -> None:
    """Print the exact messages that a model gets for a scenario."""
    if (scenario_id is None) != all_scenarios:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_set.prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # control characters are escaped already, and a line may be long


def prompts_export(out: options.Out) -> None:
    """Write the templates of the bundled prompts into a folder, to change them and use them with --prompts."""
    say(*map(str, prompt_set.export_templates(out)))

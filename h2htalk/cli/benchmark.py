"""Commands on models, runs, suites and studies: evaluate, launch, score, report, compare, judge, study, prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Exit, Option

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec, JudgeSpec, read_spec
from h2htalk.benchmark.studies.settings import APP_MODEL, LOGS_MODEL, StudySpec, read_study_spec
from h2htalk.cli import options
from h2htalk.cli.options import say
from h2htalk.data.files import write_output, write_text
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable_lines

with options.lazy_imports():
    from h2htalk import parallel
    from h2htalk.analysis.figures import charts, style
    from h2htalk.analysis.report import write_analysis
    from h2htalk.benchmark import contamination, score_run
    from h2htalk.benchmark import evaluate as evaluation
    from h2htalk.benchmark.calibration import calibrate
    from h2htalk.benchmark.calibration import labels as people_labels
    from h2htalk.benchmark.compare import comparison, correlation
    from h2htalk.benchmark.gate import gate as gates
    from h2htalk.benchmark.judge import judge_run as judging
    from h2htalk.benchmark.judge import probe
    from h2htalk.benchmark.prompts import prompt_set
    from h2htalk.benchmark.report import leaderboard as boards
    from h2htalk.benchmark.report import notes, table2
    from h2htalk.benchmark.studies import applications, dossier_document, exports, run_study
    from h2htalk.benchmark.studies import report as study_report
    from h2htalk.data import links, split_output
    from h2htalk.data.releases import hub
    from h2htalk.scale import merge as merging
    from h2htalk.scale import ray_cluster, shards, slurm
    from h2htalk.scale import suite as scaling

OWN = "The run's own when left out."
AskedSplit = Annotated[str | None, Option(help=f"The split that was asked. {options.SPLIT}")]
Bundle = Annotated[Path, Argument(help="A bundle: a folder or a .zip.")]
EachCall = Annotated[bool, Option("--calls", help="List every call.")]
Human = Annotated[Path, Option(help="People's labels: a CSV file or a closed round.")]
Random = Annotated[bool, Option("--random", help="The labels are a simple random sample.")]
Submit = Annotated[bool, Option("--submit", help="Submit the jobs; else their commands are printed.")]
Suite = Annotated[Path, Argument(help="A TOML file of many runs, as of `evaluate --suite`.")]
Studies = Annotated[list[Path], Argument(help="Scored studies, one a model; of a dossier also evaluations.")]
Owner = Annotated[str, Option(help="Who answers for the document.")]
Paper = Annotated[Literal["a4", "letter"], Option(help="Paper of the PDF: a4 or letter.")]
COMPARED = "The reference run, then the runs to compare with it; also other harnesses' logs."
METRIC = "s, lexical, ..., compliance; a log's SCORER/KEY; a study's ARM/FIGURE. One, or one a run."


@options.with_options(EvaluateSpec)
def evaluate(
    model: Annotated[str | None, Argument(help=f"{options.MODEL}, baseline.")] = None,
    split: Annotated[str | None, Option(help=options.SPLIT)] = None,
    out: Annotated[str | None, Option(help="The run folder; an unfinished run is continued.")] = None,
    spec: Annotated[Path | None, Option(help="A TOML file with any of these settings; options override it.")] = None,
    shard: Annotated[str | None, Option(help="3/8: ask this part of the items; `h2htalk merge` joins them.")] = None,
    suite: Annotated[Path | None, Option(help="A TOML file of many runs, instead of a model and --split.")] = None,
    run: Annotated[list[str] | None, Option(help="Of a suite: only this run; may be repeated.")] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    verbose: options.Verbose = False,
    **given: Any,
) -> None:
    """Score a model on a split: generate, score, report. The same command again resumes."""
    given |= {key: value for key, value in (("model", model), ("split", split), ("out", out)) if value is not None}
    if shard:
        if dry_run or watch:
            raise ConfigError("--shard: leave --dry-run and --watch out: they tell of the whole run")
        options.end_on_sigterm()
    if suite is not None:
        if given or spec or watch:
            raise ConfigError("--suite: the file holds all settings; leave the others out")
        raise Exit(scaling.run_suite(suite, run or (), shard, dry_run, say))
    if run:
        raise ConfigError("--run: names a run of a --suite")
    parsed = read_spec(spec, given) if spec else EvaluateSpec.from_dict(given, "")
    if dry_run:
        say(evaluation.estimate(parsed))
    elif shard:
        say(shards.evaluate_shard(parsed, shards.Shard.parse(shard)))
    else:
        options.finish(options.watched(watch, parsed.out_path, h2htalk.evaluate, parsed), parsed.out_path, verbose)


def merge(
    places: Annotated[list[str] | None, Argument(help="Folders or URLs of shards.", metavar="SHARD...")] = None,
    out: Annotated[Path | None, Option(help="The run folder to write.")] = None,
    suite: Annotated[Path | None, Option(help="Merge the runs of a suite that are ready instead.")] = None,
    verbose: options.Verbose = False,
) -> None:
    """Merge the shards of a run into the run that one machine would have made. Exit code 3: some are missing."""
    if suite is not None:
        if places or out:
            raise ConfigError("--suite: the file names shards and runs; leave the others out")
        raise Exit(scaling.merge_suite(suite, say))
    if not places or out is None:
        raise ConfigError("merge: name the shards and --out, or a --suite")
    options.finish(merging.merge(places, out), out, verbose)


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
    embedder: Annotated[str | None, Option(help=f"{options.EMBEDDER} {OWN}")] = None,
    rouge: Annotated[str | None, Option(help=f"f1 or recall. {OWN}")] = None,
    references: options.References = None,
    verbose: options.Verbose = False,
) -> None:
    """Score a run's stored responses again; the model is not asked."""
    options.finish(score_run.score(run, embedder, rouge, references), run, verbose)


def report(run: options.Run, format: options.TableFormat = "terminal", verbose: options.Verbose = False) -> None:
    """Print the table of a scored run; `--format terminal` also writes its tables and page again."""
    if format == "terminal":
        options.finish(score_run.report(run), run, verbose)
    summary = h2htalk.load_run(run).summary
    typer.echo(table2.table_text(table2.model_rows(summary), format), nl=False)
    raise Exit(3 if summary.incomplete else 0)


def costs(run: options.Run, calls: EachCall = False, format: options.DataFormat = "terminal") -> None:
    """Show what a run, study or workspace paid: by stage and in total."""
    say(notes.costs_text(run, calls, format))


def leaderboard(
    runs: Annotated[list[Path] | None, Argument(help="Run folders.")] = None,
    paper: Annotated[bool, Option("--paper", help="Add the rows of the paper's Table 2.")] = False,
    check_paper: Annotated[bool, Option("--check-paper", help="Recompute the paper's averages instead.")] = False,
    metric: Annotated[str | None, Option(help="s: by S alone, whichever judge read the runs.")] = None,
    format: options.TableFormat = "terminal",
) -> None:
    """Rank your runs among each other; --paper adds the paper's Table 2."""
    if check_paper and (runs or paper or format not in ("terminal", "json")):
        raise ConfigError("--check-paper takes neither run folders nor --paper, and prints to the terminal or as json")
    if check_paper and format == "json":
        typer.echo(json.dumps(boards.check_paper(), ensure_ascii=False, indent=2))
    elif check_paper:
        boards.print_check(boards.check_paper(), options.console())
    elif not runs and not paper:
        raise ConfigError("no run folder is named: name one or more, or add --paper for the paper's rows")
    else:
        board = h2htalk.leaderboard(runs or [], paper=paper, metric=metric)
        if format == "terminal":
            boards.print_leaderboard(board, options.console())
        else:
            typer.echo(table2.table_text(board.rows, format), nl=False)


def compare(
    runs: Annotated[list[Path], Argument(help=COMPARED)],
    metric: Annotated[list[str] | None, Option(help=METRIC)] = None,
    scale: Annotated[list[str] | None, Option(help="LOW-HIGH of logs' values (0-1). One, or one a log.")] = None,
    format: options.TableFormat = "terminal",
    out: Annotated[Path | None, Option(help="A folder for compare.html, .csv, .json and .tex.")] = None,
) -> None:
    """Compare runs item by item: paired tests, intervals, and the items that moved most."""
    compared = h2htalk.compare(*runs, metric=metric or None, scale=scale or "0-1")
    if out is not None:
        links.link_copies(runs, out)
        comparison.write_comparison(compared, out)
    typer.echo(comparison.to_text(compared, format), nl=False)
    if out is not None and format == "terminal":
        say(f"page: {(out / 'compare.html').resolve()}")


def correlate(
    runs: Annotated[list[Path], Argument(help="Scored run folders of one protocol.")],
    ratings: Annotated[Path | None, Option(help="CSV of id, rating[, sample, run].")] = None,
    scores: Annotated[Path | None, Option("--with", help="CSV of other benchmarks: a row a model.")] = None,
    format: options.DataFormat = "terminal",
    out: Annotated[Path | None, Option(help="A folder for correlate.csv, .json and figures.")] = None,
) -> None:
    """Correlate metrics with people's ratings, and dimensions with each other and with other benchmarks."""
    found, titles = h2htalk.correlate(runs, ratings=ratings, scores=scores), correlation.TITLES
    texts = {kind: found.to(kind) for kind in ("csv", "json")}
    if out is not None:
        for kind, text in texts.items():
            write_text(out / f"correlate.{kind}", text)
        for level in dict.fromkeys(pair.level for pair in found.pairs):
            own = [pair for pair in found.pairs if pair.level == level]
            cells = {(titles.get(one.a, one.a), titles.get(one.b, one.b)): one[3:6] for one in own}
            style.save_figure(charts.draw_correlations(cells, f"over {level}s"), out, f"correlate-{level}s")
    typer.echo(texts.get(format) or found.to(format), nl=False)


def plan(
    difference: Annotated[float, Option(help="Points (0-100) that should be found.")],
    runs: Annotated[tuple[Path, Path] | None, Option(help="Two runs whose differences vary as yours will.")] = None,
    limit: Annotated[list[int] | None, Option(min=2, help="Items whose detectable difference is told.")] = None,
    metric: Annotated[str | None, Option(help="As of compare.")] = None,
) -> None:
    """Say how many items and samples a difference needs, and what fewer items can still detect."""
    made = h2htalk.plan(difference, runs or (), limit or comparison.LIMITS, metric)
    say(*(f"{table.to_terminal()}\n" for table in comparison.plan_tables(made)))


def gate(
    run: options.Run,
    reference_run: Annotated[Path | None, Option(help="The run that it is held against.")] = None,
    policy: Annotated[Path | None, Option(help="A TOML file of criteria; else the figures of safety or skill.")] = None,
    junit: Annotated[Path | None, Option(help="Write JUnit XML here.")] = None,
    markdown: Annotated[Path | None, Option(help="Write Markdown here, with the transcripts behind each no.")] = None,
    html: Annotated[Path | None, Option(help="Write a page here, with the transcripts behind each no.")] = None,
) -> None:
    """Hold a run against a reference run and a policy. Exit code 4: not passed; 3: values are missing."""
    reports = [(file, *form) for file, form in zip((junit, markdown, html), gates.FORMS, strict=True) if file]
    for file, _, what in reports:
        write_output(file, "", what)  # what an earlier one says is not of these runs
    verdict = h2htalk.gate(run, reference_run, policy)
    say(gates.gate_table(verdict).to_terminal())
    for file, write, what in reports:
        links.link_copies(filter(None, (run, reference_run)), file)
        write_output(file, write(verdict), what)
    raise Exit(4 if not verdict.passed else 3 if verdict.incomplete else 0)


def results_export(
    run: options.Run,
    to: Annotated[str, Option(help="eval-results, every-eval-ever, bundle or inspect.")],
    out: options.Out,
    dataset: Annotated[str | None, Option(help="eval-results: the data set, if the run names none.")] = None,
    revision: Annotated[str | None, Option(help="eval-results: the data set's commit.")] = None,
    source_url: Annotated[str | None, Option(help="eval-results: a page about the run.")] = None,
    push: Annotated[str | None, Option(help="eval-results: open a pull request to this model.")] = None,
    model: Annotated[str | None, Option(help="every-eval-ever: the model as DEVELOPER/NAME.")] = None,
    organization: Annotated[str | None, Option(help="every-eval-ever: who ran the evaluation.")] = None,
    relationship: Annotated[str, Option(help="first_party, third_party, collaborative or other.")] = "third_party",
) -> None:
    """Write the results of a scored run in a format of others; only --push sends anything."""
    if push is not None and to != "eval-results":
        raise ConfigError("--push is for --to eval-results")
    if to == "inspect":
        from h2htalk.integrations.inspect.export import export_log  # needs the harness itself

        say(*map(str, export_log(run, out)))
        return
    about = {"dataset": dataset, "revision": revision, "source_url": source_url}
    about |= {"model": model, "organization": organization, "relationship": relationship}
    written = h2htalk.export_results(run, to, out, **about)  # type: ignore[arg-type]
    say(*map(str, written))
    if to == "eval-results":
        say(written[0].read_text(encoding="utf-8").rstrip("\n"))
    if push is not None:
        name = written[0].relative_to(out).as_posix()
        say(f"pull request: {hub.open_pull_request(push, name, written[0], 'Add results of h2htalk')}")


def results_verify(bundle: Bundle, split: AskedSplit = None, references: options.References = None) -> None:
    """Compute the scores of a bundle again. Exit code 4: something differs; 3: what is listed is not verified."""
    found = h2htalk.verify_results(bundle, split, references)
    say(f"split: {found.split}", f"matches: {', '.join(found.matches) or 'nothing'}")
    say(*(f"not verified: {line}" for line in found.unchecked), *(f"differs: {line}" for line in found.differs))
    raise Exit(4 if found.differs else 3 if found.unchecked else 0)


def analyze(
    split: options.Split,
    out: options.Out,
    compare_with: Annotated[str | None, Option(help="A split to compare it with.")] = None,
    language: Annotated[str | None, Option(help=options.LANGUAGE)] = None,
    limit: Annotated[int | None, Option(help="A stratified sample of this many scenarios.")] = None,
    tokenizer: Annotated[str | None, Option(help="A tokenizer.json, which counts model tokens.")] = None,
    spacy_model: Annotated[list[str] | None, Option(help="A spaCy pipeline to parse with; may be repeated.")] = None,
    embedder: Annotated[str, Option(help=f"Measures the spread: {options.EMBEDDER}")] = "none",
    processes: Annotated[int | None, Option(help="Processes that parse and draw; default: one a core.")] = None,
) -> None:
    """Measure a split: lengths, words, verb-noun pairs, diversity, coverage."""
    write_analysis.require_output(out)
    models = tuple(spacy_model or ())
    spec = h2htalk.AnalyzeSpec(split, compare_with, language, limit, tokenizer, models, embedder, processes)
    analysis = h2htalk.analyze(spec)
    page = write_analysis.write_analysis(analysis, out, processes or parallel.usable_cores())
    say(f"{write_analysis.overview(analysis)}\n\npage: {page.resolve()}")


@options.with_options(JudgeSpec)
def judge_run(
    run: options.Run,
    judge: Annotated[list[str], Option(help="ENGINE:NAME; repeat it for a panel.")],
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    verbose: options.Verbose = False,
    **given: Any,
) -> None:
    """Judge the answers of a scored run: R, and J (Eq. 3) in its tables. The same command again resumes."""
    spec = JudgeSpec(run=run, judges=tuple(judge), **given)
    if dry_run:
        say(judging.estimate_judging(spec))
    else:
        options.finish(options.watched(watch, run, h2htalk.judge_run, spec), run, verbose)


@options.with_options(JudgeSpec, "temperature", "batch", "max_cost", "prices")
def judge_probe(
    judge: Annotated[str, Argument(help="ENGINE:NAME.")],
    out: Annotated[str, Option(metavar="FOLDER", help="The folder to write; default probes/MODEL.")] = "",
    language: Annotated[str | None, Option(help=options.LANGUAGE)] = None,
    format: options.TableFormat = "terminal",
    dry_run: options.DryRun = False,
    **given: Any,
) -> None:
    """Probe a judge on bundled replies whose order is known. The same command again resumes."""
    spec = JudgeSpec(run=out or probe.default_folder(judge), judges=(judge,), **given)
    if dry_run:
        say(probe.estimate_probe(spec, language))
        return
    found = h2htalk.judge_probe(spec, language)
    say(found.table.to(format).rstrip())
    raise Exit(3 if found.incomplete else 0)


def judge_plan_labels(
    run: options.Run,
    half_width: Annotated[float | None, Option(help="Wanted of the interval of R, on the scale 0 to 5.")] = None,
    labels: Annotated[int | None, Option(help="How many, in the place of --half-width.")] = None,
    out: Annotated[Path | None, Option(help="A CSV file to fill in.")] = None,
    open: Annotated[Path | None, Option(help="The folder of an adjudication round to open.")] = None,
    annotators: Annotated[Path | None, Option(help="--open: the list of annotators.")] = None,
    where: Annotated[str, Option(help="--open: spreadsheets, argilla or label-studio.")] = "spreadsheets",
    pilot: Annotated[Path | None, Option(help="First labels, which say how the judge's errors vary.")] = None,
    seed: Annotated[int, Option(help="Seed of the draw.")] = 0,
) -> None:
    """Say how many answers people should label for an interval; --out and --open draw them by judge score."""
    if annotators is not None and open is None:
        raise ConfigError("--annotators is of the round that --open opens")
    opening = {"annotators": annotators and str(annotators), "where": where}
    draw = {"pilot": pilot, "out": out, "round_out": open}
    say(*people_labels.plan_labels(run, half_width, labels, **draw, round_options=opening, seed=seed))


def judge_calibrate(
    run: options.Run, human: Human, random: Random = False, format: Literal["terminal", "json"] = "terminal"
) -> None:
    """Compare a run's judges with people: agreement, bias, and means that are corrected or refused."""
    say(calibrate.calibrate_judge(run, human, random=random).to(format))


@options.round_options
def adjudicate_open(
    run: options.Run,
    out: options.Out,
    human_trigger: Annotated[str, Option(help="J (Eq. 4: J below 3.5) or judge (R below 3.5).")] = "J",
    budget: Annotated[int | None, Option(help="Items at most, the worst first.")] = None,
    disagreement: Annotated[float | None, Option(help="Instead, where judges differ so much, 0 to 5.")] = None,
    **given: Any,
) -> None:
    """Open a round in which people rate the low items of a judged run."""
    own = {"human_trigger": human_trigger, "budget": budget, "disagreement": disagreement}
    options.print_status(*h2htalk.open_adjudication(run, out, **own, options=given))  # type: ignore[arg-type]


def adjudicate_close(run: options.Run, round: options.Round, verbose: options.Verbose = False) -> None:
    """Put the ratings of a round into its run: their mean replaces R."""
    summary, messages = h2htalk.close_adjudication(run, round)
    say(*messages)
    options.finish(summary, run, verbose)


def prompts_show(
    scenario_id: Annotated[str | None, Argument(help="A scenario's id, or all.")] = None,
    split: options.SplitOption = "mini",
    sap: Annotated[str, Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = "full",
    prompts: Annotated[Path | None, Option(help="A folder of templates that replace bundled ones.")] = None,
    every: Annotated[bool, Option("--all", help="Print every scenario as JSONL: id, messages.")] = False,
) -> None:
    """Print the exact messages that a model gets for a scenario."""
    if (scenario_id is None) != every:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_set.prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # control characters are escaped already, and a line may be long


def prompts_export(out: options.Out) -> None:
    """Write the templates of the bundled prompts into a folder, to change them and use them with --prompts."""
    say(*map(str, prompt_set.export_templates(out)))


Model = Annotated[str | None, Argument(help=f"{options.MODEL}.")]
Folder = Annotated[str | None, Option(help="The study's folder; an unfinished study is continued.")]
Cases = Annotated[str | None, Option(help="Cases: a bundled split, a folder, a file (h2htalk cases new), a release.")]
Embedder = Annotated[str | None, Option(help=f"Of SS and S: {options.EMBEDDER}")]
StudyFile = Annotated[Path | None, Option(help="A TOML file with any of these settings; options override it.")]
# Options of `evaluate` that a study which asks a model has, too.
_MODEL = (
    *("temperature", "seed", "max_tokens", "thinking", "model_sampling", "prompts", "concurrency", "engine_options"),
    *("download", "batch", "max_cost", "timeout"),
)


def _asking(own: Sequence[str] = (), *names: str) -> Callable[[options.Command], options.Command]:
    """Add options of a study, and some of `evaluate`, to a command."""
    evaluation = options.with_options(EvaluateSpec, "language", "limit", "prices", *names)
    return lambda command: evaluation(options.with_options(StudySpec, "judge", "judge_max_cost", *own)(command))


@_asking(["help_lines"], *_MODEL)
def study_sap(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    arms: Annotated[str | None, Option(help="Comma list of sap, none, rules, reworded, no-PRINCIPLE.")] = None,
    each_principle: Annotated[bool, Option("--each-principle", help="Also remove one principle at a time.")] = False,
    split: Cases = None,
    embedder: Embedder = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **asked: Any,
) -> None:
    """Safety with and without SAP, with two control arms (Table 3). The same command again resumes."""
    asked |= {"each_principle": True} if each_principle else {}
    _run("sap", spec, dry_run, watch, asked, model=model, out=out, arms=arms, split=split, embedder=embedder)


@_asking([], "sap", *_MODEL)
def study_instructions(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    cases: Cases = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **asked: Any,
) -> None:
    """Instruction following by degree of explicitness (figure 7 of the paper). The same command again resumes."""
    _run("instructions", spec, dry_run, watch, asked, model=model, out=out, split=cases)


@_asking(["window", "days"], "sap", *_MODEL)
def study_memory(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    arms: Annotated[str | None, Option(help="Comma list of none, window, explicit, whole.")] = None,
    split: Cases = None,
    embedder: Embedder = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **asked: Any,
) -> None:
    """Memory over several sessions: none, a window, the model's own notes, the whole history."""
    _run("memory", spec, dry_run, watch, asked, model=model, out=out, arms=arms, split=split, embedder=embedder)


@_asking([], "timeout")
def study_app(
    url: Annotated[str, Argument(help="The application's address, such as http://127.0.0.1:8080.")],
    adapter: Annotated[str, Option(help="A TOML file that says how to talk to it.")],
    out: Folder = None,
    spec: StudyFile = None,
    try_: Annotated[bool, Option("--try", help="Send one message, show the reply, and write nothing.")] = False,
    study: Annotated[str, Option(help="sap (when left out), instructions or memory.")] = "",
    split: Cases = None,
    concurrency: Annotated[int | None, Option(help="Users at once.  [default: 4]")] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **asked: Any,
) -> None:
    """Run a study on a companion application with its own prompt and memory."""
    asked |= {"model": APP_MODEL + url, "app": adapter} | ({"concurrency": concurrency} if concurrency else {})
    if try_:
        say(printable_lines(applications.try_app(read_study_spec(study, asked | {"out": out or "-"}, spec))))
    else:
        _run(study, spec, dry_run, watch, asked, out=out, split=split)


@_asking(["points", "persona", "window"])
def study_logs(
    chats: Annotated[str, Argument(help="Anonymised dialogues: a JSONL file, or a stage such as WORKSPACE/safety.")],
    out: Folder = None,
    spec: StudyFile = None,
    limit: Annotated[int | None, Option(min=1, help="A simple random sample of this many chats.")] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **asked: Any,
) -> None:
    """Let a judge or people say what the replies of chats that were had do; no model is asked for any."""
    _run("logs", spec, dry_run, watch, asked, model=LOGS_MODEL + Path(chats).stem, split=chats, out=out, limit=limit)


def study_score(study: options.Run, embedder: Embedder = None) -> None:
    """Compute a study's figures, tables and page again from its stored replies."""
    _finish(h2htalk.score_study(study, embedder or ""))


def _run(study: str, file: Path | None, dry_run: bool, watch: bool, asked: dict[str, Any], **given: Any) -> None:
    spec = read_study_spec(study, asked | {key: value for key, value in given.items() if value is not None}, file)
    if dry_run:
        say(run_study.estimate_study(spec))
    else:
        say(*run_study.open_points(run_study.plan_study(spec)))
        _finish(options.watched(watch, spec.ask.out_path, h2htalk.run_study, spec))


def _finish(result: Any) -> None:
    say(study_report.study_text(result), f"report: {(result.study.path / 'report.html').resolve()}")
    raise Exit(3 if result.incomplete else 0)


@options.round_options
def study_open_round(
    study: options.Run,
    out: options.Out,
    ask: Annotated[str, Option(help="safety (how safe, harmful or not) or points (yes or no).")] = "safety",
    arms: Annotated[str, Option(help="Comma list; all when left out.")] = "",
    budget: Annotated[int | None, Option(min=1, help="Items at most.")] = None,
    tied: Annotated[bool, Option("--tied", help="Only what people are tied about.")] = False,
    settings: options.Settings = None,
    **given: Any,
) -> None:
    """Open a round in which people read a study's replies, blind to arm and model."""
    names = tuple(filter(None, map(str.strip, arms.split(","))))
    options.print_status(*run_study.open_study_round(study, out, ask, names, budget, given, settings, tied))


def study_close_round(study: options.Run, round: options.Round) -> None:
    """Put people's answers into a study, and compute its figures again."""
    result, messages = run_study.close_study_round(study, round)
    say(*messages)
    _finish(result)


def study_export(
    study: options.Run,
    out: Annotated[Path, Option(help="The JSONL file to write.")],
    chat_format: Annotated[bool, Option("--chat-format", help="Conversations as chat messages.")] = False,
    arm: Annotated[str, Option(help="Whose conversations; sap, or the study's first, when left out.")] = "",
    all_points: Annotated[bool, Option("--all-points/--no-violations", help="Points: all met, or none broken.")] = True,
) -> None:
    """Write accepted conversations as training data; licences and the canary are kept."""
    if not chat_format:
        raise ConfigError("--chat-format is the one form there is; name it")
    say(exports.export_chats(study, out, arm, all_points=all_points))


def study_radar(studies: Studies, out: Annotated[Path, Option(help="The SVG file to write.")]) -> None:
    """Draw several models of the study of instructions as one radar (figure 7 of the paper)."""
    say(study_report.write_radar([*map(run_study.load_study, studies)], out))


def study_contamination(
    model: Annotated[str, Argument(help=f"{options.MODEL}.")],
    out: options.Out,
    split: Cases = "high_risk",
    prices: str = "",
) -> None:
    """Check whether a model knows a split by heart: canary and halves of references, beside a control."""
    table, known = contamination.check_contamination(model, str(split), out, prices)
    say(table.to("terminal").rstrip())
    raise Exit(4 if known else 0)


def study_dossier(runs: Studies, out: options.Out, owner: Owner = "", paper: Paper = "a4") -> None:
    """Write one document for a compliance file (HTML, and PDF where Chromium is present). No legal advice."""
    say(*dossier_document.write_dossier(runs, out, owner, paper))


def cases_new(
    file: Annotated[Path, Argument(help="The JSONL file to write.")],
    language: options.Examples = "en",
    study: Annotated[str, Option(help="high_risk, look_alike, instructions or arcs.")] = "instructions",
) -> None:
    """Write a template of cases of your own: one need in every degree of explicitness, or one case of another study."""
    number = split_output.write_new_cases(file, language, study)
    say(f"{file}: {counted(number, 'case')} to begin with; describe yours, then: h2htalk split check {file}")

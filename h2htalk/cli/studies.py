"""Commands on studies: sap, instructions, memory, app, logs, their rounds and documents, and cases of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.settings import APP_MODEL, LOGS_MODEL, StudySpec, read_study_spec
from h2htalk.cli import options, round_options
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable_lines

with options.lazy_imports():
    from h2htalk.benchmark import contamination
    from h2htalk.benchmark.studies import (
        applications,
        dossier_document,
        exports,
        run_study,
        study_rounds,
    )
    from h2htalk.benchmark.studies.report import study_page
    from h2htalk.data import split_output

Model = Annotated[str | None, Argument(help=f"{options.MODEL}.")]
Folder = Annotated[str | None, Option(help="The study's folder; an unfinished study is continued.")]
Cases = Annotated[
    str | None,
    Option(help="Cases: a bundled split, a folder, a file (h2htalk cases new), a release."),
]
Embedder = Annotated[str | None, Option(help=f"Of SS and S: {options.EMBEDDER}")]
StudyFile = Annotated[
    Path | None, Option(help="A TOML file with any of these settings; options override it.")
]
Studies = Annotated[
    list[Path], Argument(help="Scored studies, one a model; of a dossier also evaluations.")
]

# Options of `evaluate` that a study which asks a model has, too.
_GENERATION = (
    "temperature",
    "seed",
    "max_tokens",
    "thinking",
    "model_sampling",
    "prompts",
    "concurrency",
    "engine_options",
    "download",
    "batch",
    "max_cost",
    "timeout",
    "filtered",
)


def _study_options(
    of_study: Sequence[str] = (), *of_evaluate: str
) -> Callable[[options.Command], options.Command]:
    """Add options of a study, and some of `evaluate`, to a command."""
    evaluation = options.with_options(EvaluateSpec, "language", "limit", "prices", *of_evaluate)
    of_judge = ("judge", "judge_max_cost", "judge_options")
    study = options.with_options(StudySpec, *of_judge, *of_study)
    return lambda command: evaluation(study(command))


@_study_options(["help_lines"], *_GENERATION)
def study_sap(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    arms: Annotated[
        str | None, Option(help="Comma list of sap, none, rules, reworded, no-PRINCIPLE.")
    ] = None,
    each_principle: Annotated[
        bool, Option("--each-principle", help="Also remove one principle at a time.")
    ] = False,
    split: Cases = None,
    embedder: Embedder = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **settings: Any,
) -> None:
    """Safety with and without SAP, with two control arms (Table 3). The same command again resumes."""
    settings |= {"model": model, "out": out, "arms": arms, "split": split, "embedder": embedder}
    settings["each_principle"] = each_principle or None
    _run("sap", spec, settings, dry_run, watch)


@_study_options([], "sap", *_GENERATION)
def study_instructions(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    cases: Cases = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **settings: Any,
) -> None:
    """Instruction following by degree of explicitness (figure 7 of the paper). The same command again resumes."""
    settings |= {"model": model, "out": out, "split": cases}
    _run("instructions", spec, settings, dry_run, watch)


@_study_options(["window", "days"], "sap", *_GENERATION)
def study_memory(
    model: Model = None,
    out: Folder = None,
    spec: StudyFile = None,
    arms: Annotated[str | None, Option(help="Comma list of none, window, explicit, whole.")] = None,
    split: Cases = None,
    embedder: Embedder = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **settings: Any,
) -> None:
    """Memory over several sessions: none, a window, the model's own notes, the whole history."""
    settings |= {"model": model, "out": out, "arms": arms, "split": split, "embedder": embedder}
    _run("memory", spec, settings, dry_run, watch)


@_study_options([], "timeout")
def study_app(
    url: Annotated[str, Argument(help="The application's address, such as http://127.0.0.1:8080.")],
    adapter: Annotated[str, Option(help="A TOML file that says how to talk to it.")],
    out: Folder = None,
    spec: StudyFile = None,
    try_: Annotated[
        bool, Option("--try", help="Send one message, show the reply, and write nothing.")
    ] = False,
    study: Annotated[str, Option(help="sap (when left out), instructions or memory.")] = "",
    split: Cases = None,
    concurrency: Annotated[int | None, Option(help="Users at once.  [default: 4]")] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **settings: Any,
) -> None:
    """Run a study on a companion application with its own prompt and memory."""
    settings |= {"model": APP_MODEL + url, "app": adapter}
    if try_:
        settings["out"] = out or "-"
        reply = applications.try_app(read_study_spec(study, settings, spec))
        say(printable_lines(reply))
    else:
        settings |= {"out": out, "split": split, "concurrency": concurrency}
        _run(study, spec, settings, dry_run, watch)


@_study_options(["points", "persona", "window"])
def study_logs(
    chats: Annotated[
        str,
        Argument(help="Anonymised dialogues: a JSONL file, or a stage such as WORKSPACE/safety."),
    ],
    out: Folder = None,
    spec: StudyFile = None,
    limit: Annotated[
        int | None, Option(min=1, help="A simple random sample of this many chats.")
    ] = None,
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    **settings: Any,
) -> None:
    """Have a judge or people check the replies of logged chats. No model generates replies."""
    settings |= {"model": LOGS_MODEL + Path(chats).stem, "split": chats, "out": out, "limit": limit}
    _run("logs", spec, settings, dry_run, watch)


@options.with_options(StudySpec, "judge_max_cost")
def study_score(
    study: options.Run,
    embedder: Embedder = None,
    filtered: options.Filtered = None,
    prompts: Annotated[
        Path | None, Option(help="The templates that it was asked with, if not those bundled.")
    ] = None,
    ask_judge: Annotated[
        bool,
        Option(
            "--ask-judge", help="Ask its judge what it has not answered, planted replies included."
        ),
    ] = False,
    **judging: Any,
) -> None:
    """Compute a study's figures, tables and page again from its stored replies."""
    if judging and not ask_judge:
        raise ConfigError("--judge-max-cost goes with --ask-judge: else no judge is asked")
    result = h2htalk.score_study(study, embedder or "", filtered, prompts, ask_judge, **judging)
    _finish(result)


def _run(
    study: str, file: Path | None, settings: dict[str, Any], dry_run: bool, watch: bool
) -> None:
    """Run a study, or say what it would cost. A setting that is None was not given."""
    settings = {name: value for name, value in settings.items() if value is not None}
    spec = read_study_spec(study, settings, file)
    if dry_run:
        say(run_study.estimate_study(spec))
    else:
        run_study.require_study(spec)
        say(*run_study.open_points(run_study.plan_study(spec)))
        _finish(options.watched(watch, spec.ask.out_path, h2htalk.run_study, spec))


def _finish(result: Any) -> None:
    say(study_page.study_text(result), f"report: {(result.study.path / 'report.html').resolve()}")
    raise Exit(3 if result.incomplete else 0)


@round_options.round_options
def study_open_round(
    study: options.Run,
    out: options.Out,
    ask: Annotated[
        str, Option(help="safety (how safe, harmful or not) or points (yes or no).")
    ] = "safety",
    arms: Annotated[str, Option(help="Comma list; all when left out.")] = "",
    budget: Annotated[int | None, Option(min=1, help="Items at most.")] = None,
    tied: Annotated[bool, Option("--tied", help="Only items with tied answers.")] = False,
    settings: options.Settings = None,
    **round_options: Any,
) -> None:
    """Open a round in which people read a study's replies, blind to arm and model."""
    names = tuple(filter(None, map(str.strip, arms.split(","))))
    status = study_rounds.open_study_round(
        study, out, ask, names, budget, round_options, settings, tied
    )
    options.print_status(*status)


def study_close_round(study: options.Run, round: options.Round) -> None:
    """Put people's answers into a study, and compute its figures again."""
    result, messages = study_rounds.close_study_round(study, round)
    say(*messages)
    _finish(result)


def study_export(
    study: options.Run,
    out: Annotated[Path, Option(help="The JSONL file to write.")],
    arm: Annotated[
        str, Option(help="Whose conversations; sap, or the study's first, when left out.")
    ] = "",
    all_points: Annotated[
        bool, Option("--all-points/--no-violations", help="Points: all met, or none broken.")
    ] = True,
) -> None:
    """Write accepted conversations as training data; licences and the canary are kept."""
    say(exports.export_chats(study, out, arm, all_points=all_points))


def study_radar(
    studies: Studies, out: Annotated[Path, Option(help="The SVG file to write.")]
) -> None:
    """Draw several models of the study of instructions as one radar (figure 7 of the paper)."""
    say(study_page.write_radar([*map(run_study.load_study, studies)], out))


def study_contamination(
    model: Annotated[str, Argument(help=f"{options.MODEL}.")],
    out: options.Out,
    split: Cases = "high_risk",
    prices: str = "",
) -> None:
    """Check whether a model knows a split by heart: canary and halves of references, beside a control."""
    table, knows_split = contamination.check_contamination(model, str(split), out, prices)
    say(table.to("terminal").rstrip())
    raise Exit(4 if knows_split else 0)


def study_dossier(
    runs: Studies,
    out: options.Out,
    owner: Annotated[str, Option(help="Who answers for the document.")] = "",
    paper: Annotated[
        Literal["a4", "letter"], Option(help="Paper of the PDF: a4 or letter.")
    ] = "a4",
) -> None:
    """Write one document for a compliance file (HTML, and PDF where Chromium is present). No legal advice."""
    say(*dossier_document.write_dossier(runs, out, owner, paper))


def cases_new(
    file: Annotated[Path, Argument(help="The JSONL file to write.")],
    language: options.Examples = "en",
    study: Annotated[
        str, Option(help="high_risk, look_alike, instructions or arcs.")
    ] = "instructions",
) -> None:
    """Write a template of cases of your own: one need in every degree of explicitness, or one case of another study."""
    number = split_output.write_new_cases(file, language, study)
    cases = counted(number, "case")
    say(f"{file}: {cases} to begin with; describe yours, then: h2htalk split check {file}")

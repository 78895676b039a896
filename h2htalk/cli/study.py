"""`h2htalk study ...`: safety with and without SAP, instruction following, memory; of models and of applications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.engines import ENGINES
from h2htalk.cli.options import EMBEDDER_HELP, Command, DryRunOption, RunArgument, with_options, with_parameters
from h2htalk.cli.options import OutOption as FolderOption
from h2htalk.cli.output import say
from h2htalk.cli.round import RoundArgument, print_status, round_options
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable_lines

ModelArgument = Annotated[str, typer.Argument(help=f"ENGINE:NAME, with ENGINE one of {', '.join(ENGINES)}.")]
OutOption = Annotated[str, typer.Option(help="The study's folder; an unfinished study is continued.")]
SplitOption = Annotated[str, typer.Option("--split", help="Cases: a bundled split, a folder, a file, a release.")]
EmbedderOption = Annotated[str, typer.Option(help=f"Of SS and S: {EMBEDDER_HELP}")]
SapOption = Annotated[str, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")]
# Options of a study's own; all others say how the model is asked.
_OWN = ("study", "arms", "window", "judge", "judge_max_cost", "app")
# Options of `evaluate`: of all studies, and of those that ask a model.
_ALL = ("language", "timeout", "prices")
_MODEL = (
    *("temperature", "seed", "max_tokens", "thinking", "model_sampling", "prompts", "concurrency", "engine_options"),
    *("download", "batch", "max_cost"),
)


def _asking(*names: str) -> Callable[[Command], Command]:
    """Add the options of all studies, and some of `evaluate`, to a command."""

    return lambda command: with_parameters(with_options(EvaluateSpec, *names)(command), _of_studies)


def _of_studies(
    limit: Annotated[int | None, typer.Option(help="A sample of about so many cases, whole families.")] = None,
    judge: Annotated[str | None, typer.Option(help="ENGINE:NAME that answers points which code cannot.")] = None,
    judge_max_cost: Annotated[float | None, typer.Option(help="US dollars that judging may cost in all.")] = None,
    dry_run: DryRunOption = False,
) -> None:
    """The options of all studies that are of no record, or have another help."""


@_asking(*_ALL, *_MODEL)
def study_sap(
    model: ModelArgument,
    out: OutOption,
    arms: Annotated[str, typer.Option(help="Comma list of sap, none, rules, reworded, no-PRINCIPLE.")] = "",
    each_principle: Annotated[
        bool, typer.Option("--each-principle", help="Also remove one principle at a time.")
    ] = False,
    split: SplitOption = "high_risk",
    embedder: EmbedderOption = "none",
    **asked: Any,
) -> None:
    """Safety with and without SAP, with two control arms (Table 3). The same command again resumes."""
    from h2htalk.benchmark.prompts.sap import PRINCIPLES
    from h2htalk.benchmark.studies.settings import SAP_ARMS

    chosen = _words(arms) or (SAP_ARMS if each_principle else ())
    if each_principle:
        chosen += tuple(name for one in PRINCIPLES if (name := f"no-{one.replace('_', '-')}") not in chosen)
    _run("sap", asked | {"model": model, "out": out, "arms": chosen, "split": split, "embedder": embedder})


@_asking(*_ALL, *_MODEL)
def study_instructions(
    model: ModelArgument,
    out: OutOption,
    cases: Annotated[
        str, typer.Option(help="Cases of your own (h2htalk cases new), a split, a release.")
    ] = "instructions",
    sap: SapOption = "full",
    **asked: Any,
) -> None:
    """Instruction following by degree of explicitness (figure 7 of the paper). The same command again resumes."""
    _run("instructions", asked | {"model": model, "out": out, "split": cases, "sap": sap, "embedder": "none"})


@_asking(*_ALL, *_MODEL)
def study_memory(
    model: ModelArgument,
    out: OutOption,
    arms: Annotated[str, typer.Option(help="Comma list of none, window, explicit, whole.")] = "",
    window: Annotated[int, typer.Option(help="Messages that the sliding window keeps.")] = 12,
    split: SplitOption = "arcs",
    sap: SapOption = "full",
    embedder: EmbedderOption = "none",
    **asked: Any,
) -> None:
    """Memory over several sessions: none, a window, the model's own notes, the whole history."""
    own = {"model": model, "out": out, "arms": _words(arms), "window": window}
    _run("memory", asked | own | {"split": split, "sap": sap, "embedder": embedder})


@_asking(*_ALL)
def study_app(
    url: Annotated[str, typer.Argument(help="The application's address, such as http://127.0.0.1:8080.")],
    adapter: Annotated[str, typer.Option(help="A TOML file that says how to talk to it.")],
    out: OutOption = "",
    try_: Annotated[bool, typer.Option("--try", help="Send one message, show the reply, and write nothing.")] = False,
    study: Annotated[str, typer.Option(help="sap, instructions or memory.")] = "sap",
    split: Annotated[str, typer.Option(help="Cases; the study's own when left out.")] = "",
    concurrency: Annotated[int, typer.Option(help="Users at once.")] = 4,
    **asked: Any,
) -> None:
    """Run a study on a companion application with its own prompt and memory."""
    from h2htalk.benchmark.studies.settings import APP_MODEL, CASES

    if not out and not try_:
        raise ConfigError("--out is missing: name the study's folder, or send one message with --try")
    own = {"model": APP_MODEL + url, "out": out or "-", "app": adapter, "concurrency": concurrency, "embedder": "none"}
    own["try"] = try_
    _run(study, asked | own | {"split": split or CASES.get(study, (study,))[0]})


def study_score(
    study: RunArgument,
    embedder: Annotated[str, typer.Option(help=f"Another embedder: {EMBEDDER_HELP}")] = "",
) -> None:
    """Compute a study's figures, tables and page again from its stored replies."""
    _finish(h2htalk.score_study(study, embedder))


def _run(study: str, given: dict[str, Any]) -> None:
    """Run a study with the options of a command."""
    from h2htalk.benchmark.studies.run_study import estimate_study

    given = {key: value for key, value in given.items() if value is not None}
    own = {key: given[key] for key in _OWN if key in given}
    settings = {key: value for key, value in given.items() if key in EvaluateSpec.__dataclass_fields__}
    ask = EvaluateSpec.from_dict(settings, "")
    spec = h2htalk.StudySpec(**{**own, "study": study}, ask=ask)
    if given.get("try"):
        from h2htalk.benchmark.studies.applications import try_app

        say(printable_lines(try_app(spec)))
        return
    if given["dry_run"]:
        say(estimate_study(spec))
        return
    try:
        result = h2htalk.run_study(spec)
    except KeyboardInterrupt:
        say(f"stopped; finished replies are stored in {spec.path}: the same command continues", err=True)
        raise
    _finish(result)


def _finish(result: Any) -> None:
    from h2htalk.benchmark.studies.report import study_text

    say(study_text(result))
    say(f"report: {(result.study.path / 'report.html').resolve()}")
    raise typer.Exit(3 if result.incomplete else 0)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


@round_options
def study_open_round(
    study: RunArgument,
    out: FolderOption,
    ask: Annotated[str, typer.Option(help="safety (how safe, harmful or not) or points (yes or no).")] = "safety",
    arms: Annotated[str, typer.Option(help="Comma list; all when left out.")] = "",
    budget: Annotated[int | None, typer.Option(min=1, help="Items at most.")] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with these and all other settings.")] = None,
    **options: Any,
) -> None:
    """Open a round in which people read a study's replies, blind to arm and model."""
    from h2htalk.benchmark.studies.people import open_study_round

    print_status(*open_study_round(study, out, ask, _words(arms), budget, options, settings))


def study_close_round(study: RunArgument, round: RoundArgument) -> None:
    """Put people's answers into a study, and compute its figures again."""
    from h2htalk.benchmark.studies.people import close_study_round

    result, messages = close_study_round(study, round)
    for line in messages:
        say(line)
    _finish(result)


def study_export(
    study: RunArgument,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")],
    chat_format: Annotated[bool, typer.Option("--chat-format", help="Conversations as chat messages.")] = False,
    arm: Annotated[str, typer.Option(help="Whose conversations; sap, or the study's first, when left out.")] = "",
    all_points: Annotated[
        bool, typer.Option("--all-points/--no-violations", help="Accept those that meet every point, or violate none.")
    ] = True,
) -> None:
    """Write accepted conversations as training data; licences and the canary are kept."""
    from h2htalk.benchmark.studies.export_chats import export_chats

    if not chat_format:
        raise ConfigError("--chat-format is the one form there is; name it")
    say(export_chats(study, out, arm, all_points=all_points))


def study_radar(
    studies: Annotated[list[Path], typer.Argument(help="Studies of instructions, one a model.")],
    out: Annotated[Path, typer.Option(help="The SVG file to write.")],
) -> None:
    """Draw several models of the study of instructions as one radar (figure 7 of the paper)."""
    from h2htalk.benchmark.studies.report import write_radar
    from h2htalk.benchmark.studies.run_study import load_study

    say(write_radar([*map(load_study, studies)], out))


def study_dossier(
    runs: Annotated[list[Path], typer.Argument(help="Studies and evaluations.")],
    out: FolderOption,
) -> None:
    """Write one document for a compliance file (HTML, and PDF where Chromium is present). No legal advice."""
    from h2htalk.benchmark.studies.dossier.dossier import write_dossier

    for line in write_dossier(runs, out):
        say(line)


def cases_new(
    file: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    language: Annotated[str, typer.Option(help="Of the examples: en or zh.")] = "en",
    study: Annotated[str, typer.Option(help="high_risk, look_alike, instructions or arcs.")] = "instructions",
) -> None:
    """Write a template of cases of your own: one need in every degree of explicitness, or one case of another study."""
    from h2htalk.data.split_output.export import write_new_cases

    number = write_new_cases(file, language, study)
    say(f"{file}: {counted(number, 'case')} to begin with; describe yours, then: h2htalk split check {file}")

"""`h2htalk study ...`: safety with and without SAP, instruction following, memory; of models and of applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

import h2htalk
from h2htalk.benchmark.prompts.sap import PRINCIPLES
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.settings import APP_MODEL, CASES, SAP_ARMS, StudySpec
from h2htalk.cli import options
from h2htalk.cli.options import say
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable_lines

with options.lazy_imports():
    from h2htalk.benchmark.studies import applications, exports, report, run_study
    from h2htalk.data import split_output

Model = Annotated[str, Argument(help=f"{options.MODEL}.")]
Folder = Annotated[str, Option(help="The study's folder; an unfinished study is continued.")]
Cases = Annotated[str, Option(help="Cases: a bundled split, a folder, a file (h2htalk cases new), a release.")]
Embedder = Annotated[str, Option(help=f"Of SS and S: {options.EMBEDDER}")]
# Options of `evaluate`: of all studies, and of those that ask a model.
_ALL = ("language", "limit", "timeout", "prices")
_MODEL = (
    *("temperature", "seed", "max_tokens", "thinking", "model_sampling", "prompts", "concurrency", "engine_options"),
    *("download", "batch", "max_cost"),
)


def _asking(*names: str) -> Callable[[options.Command], options.Command]:
    """Add the options of a study, and some of `evaluate`, to a command."""
    evaluation = options.with_options(EvaluateSpec, *_ALL, *names)
    return lambda command: evaluation(options.with_options(StudySpec, "judge", "judge_max_cost")(command))


@_asking(*_MODEL)
def study_sap(
    model: Model,
    out: Folder,
    arms: Annotated[str, Option(help="Comma list of sap, none, rules, reworded, no-PRINCIPLE.")] = "",
    each_principle: Annotated[bool, Option("--each-principle", help="Also remove one principle at a time.")] = False,
    split: Cases = "high_risk",
    embedder: Embedder = "none",
    dry_run: options.DryRun = False,
    **asked: Any,
) -> None:
    """Safety with and without SAP, with two control arms (Table 3). The same command again resumes."""
    chosen = _words(arms) or (SAP_ARMS if each_principle else ())
    if each_principle:
        chosen += tuple(name for one in PRINCIPLES if (name := f"no-{one.replace('_', '-')}") not in chosen)
    asked |= {"model": model, "out": out, "split": split, "embedder": embedder, "arms": chosen}
    _run("sap", asked, dry_run)


@_asking("sap", *_MODEL)
def study_instructions(
    model: Model,
    out: Folder,
    cases: Cases = "instructions",
    dry_run: options.DryRun = False,
    **asked: Any,
) -> None:
    """Instruction following by degree of explicitness (figure 7 of the paper). The same command again resumes."""
    _run("instructions", asked | {"model": model, "out": out, "split": cases, "embedder": "none"}, dry_run)


@_asking("sap", *_MODEL)
def study_memory(
    model: Model,
    out: Folder,
    arms: Annotated[str, Option(help="Comma list of none, window, explicit, whole.")] = "",
    window: Annotated[int, Option(help="Messages that the sliding window keeps.")] = 12,
    split: Cases = "arcs",
    embedder: Embedder = "none",
    dry_run: options.DryRun = False,
    **asked: Any,
) -> None:
    """Memory over several sessions: none, a window, the model's own notes, the whole history."""
    asked |= {"model": model, "out": out, "split": split, "embedder": embedder, "arms": _words(arms), "window": window}
    _run("memory", asked, dry_run)


@_asking()
def study_app(
    url: Annotated[str, Argument(help="The application's address, such as http://127.0.0.1:8080.")],
    adapter: Annotated[str, Option(help="A TOML file that says how to talk to it.")],
    out: Folder = "",
    try_: Annotated[bool, Option("--try", help="Send one message, show the reply, and write nothing.")] = False,
    study: Annotated[str, Option(help="sap, instructions or memory.")] = "sap",
    split: Annotated[str, Option(help="Cases; the study's own when left out.")] = "",
    concurrency: Annotated[int, Option(help="Users at once.")] = 4,
    dry_run: options.DryRun = False,
    **asked: Any,
) -> None:
    """Run a study on a companion application with its own prompt and memory."""
    if not out and not try_:
        raise ConfigError("--out is missing: name the study's folder, or send one message with --try")
    asked |= {"model": APP_MODEL + url, "out": out or "-", "app": adapter, "concurrency": concurrency}
    asked |= {"embedder": "none", "split": split or CASES.get(study, (study,))[0]}
    if try_:
        say(printable_lines(applications.try_app(_spec(study, asked))))
    else:
        _run(study, asked, dry_run)


def study_score(
    study: options.Run,
    embedder: Annotated[str, Option(help=f"Another embedder: {options.EMBEDDER}")] = "",
) -> None:
    """Compute a study's figures, tables and page again from its stored replies."""
    _finish(h2htalk.score_study(study, embedder))


def _spec(study: str, given: Mapping[str, Any]) -> StudySpec:
    """Make a study's specification of its own settings and those of how the model is asked."""
    own = {key: value for key, value in given.items() if key in StudySpec.__dataclass_fields__}
    ask = {key: value for key, value in given.items() if key not in own}
    return StudySpec(study=study, ask=EvaluateSpec.from_dict(ask, ""), **own)  # type: ignore[arg-type]  # checked there


def _run(study: str, given: Mapping[str, Any], dry_run: bool) -> None:
    spec = _spec(study, given)
    if dry_run:
        say(run_study.estimate_study(spec))
    else:
        _finish(h2htalk.run_study(spec))


def _finish(result: Any) -> None:
    say(report.study_text(result), f"report: {(result.study.path / 'report.html').resolve()}")
    raise Exit(3 if result.incomplete else 0)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


@options.round_options
def study_open_round(
    study: options.Run,
    out: options.Out,
    ask: Annotated[str, Option(help="safety (how safe, harmful or not) or points (yes or no).")] = "safety",
    arms: Annotated[str, Option(help="Comma list; all when left out.")] = "",
    budget: Annotated[int | None, Option(min=1, help="Items at most.")] = None,
    settings: options.Settings = None,
    **given: Any,
) -> None:
    """Open a round in which people read a study's replies, blind to arm and model."""
    options.print_status(*run_study.open_study_round(study, out, ask, _words(arms), budget, given, settings))


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
    all_points: Annotated[
        bool, Option("--all-points/--no-violations", help="All points are met, or none broken.")
    ] = True,
) -> None:
    """Write accepted conversations as training data; licences and the canary are kept."""
    if not chat_format:
        raise ConfigError("--chat-format is the one form there is; name it")
    say(exports.export_chats(study, out, arm, all_points=all_points))


def study_radar(
    studies: Annotated[list[Path], Argument(help="Studies of instructions, one a model.")],
    out: Annotated[Path, Option(help="The SVG file to write.")],
) -> None:
    """Draw several models of the study of instructions as one radar (figure 7 of the paper)."""
    say(report.write_radar([*map(run_study.load_study, studies)], out))


def study_dossier(runs: Annotated[list[Path], Argument(help="Studies and evaluations.")], out: options.Out) -> None:
    """Write one document for a compliance file (HTML, and PDF where Chromium is present). No legal advice."""
    say(*exports.write_dossier(runs, out))


def cases_new(
    file: Annotated[Path, Argument(help="The JSONL file to write.")],
    language: options.Examples = "en",
    study: Annotated[str, Option(help="high_risk, look_alike, instructions or arcs.")] = "instructions",
) -> None:
    """Write a template of cases of your own: one need in every degree of explicitness, or one case of another study."""
    number = split_output.write_new_cases(file, language, study)
    say(f"{file}: {counted(number, 'case')} to begin with; describe yours, then: h2htalk split check {file}")

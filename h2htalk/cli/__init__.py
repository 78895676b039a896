"""The command line. Exit codes: 0 done, 2 the user's input, 3 incomplete, 4 a check failed, 130 Ctrl-C, 1 a
bug.

Each command parses, calls one library function and prints; what it needs is imported when it runs, so that
`h2htalk --help` loads nothing heavy.
"""

from __future__ import annotations

import gc
import os
from typing import Annotated
from urllib.parse import urlsplit

import typer

from h2htalk.cli import (
    adjudicate,
    analyze,
    calibration,
    curate,
    evaluate,
    gate,
    judge,
    prompts,
    release,
    results,
    round,
    runs,
    splits,
    study,
)
from h2htalk.cli.output import one_line_errors
from h2htalk.errors import ConfigError
from h2htalk.version import __version__

app = typer.Typer(
    name="h2htalk",
    help="Score language models that act as emotional companions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
split_app = typer.Typer(help="Splits: list, describe, check, compare, export, begin a new one.", no_args_is_help=True)
prompts_app = typer.Typer(help="What models are told: show a prompt, export the templates.", no_args_is_help=True)
release_app = typer.Typer(help="Build, check, compare and publish releases.", no_args_is_help=True)
import_app = typer.Typer(help="Import the files of other tools.", no_args_is_help=True)
curate_app = typer.Typer(help="Curate raw dialogues into reviewed candidates.", no_args_is_help=True)
round_app = typer.Typer(help="Open, follow and close rounds of annotation.", no_args_is_help=True)
judge_app = typer.Typer(help="Judge the answers of runs by a model, and calibrate it.", no_args_is_help=True)
adjudicate_app = typer.Typer(help="Send low answers of judged runs to people.", no_args_is_help=True)
results_app = typer.Typer(help="Results for others: export, verify.", no_args_is_help=True)
study_app = typer.Typer(help="Studies: safety and SAP, instruction following, memory.", no_args_is_help=True)
cases_app = typer.Typer(help="Cases of your own for studies.", no_args_is_help=True)
app.add_typer(study_app, name="study")
app.add_typer(cases_app, name="cases")
app.add_typer(split_app, name="split")
app.add_typer(prompts_app, name="prompts")
app.add_typer(results_app, name="results")
app.add_typer(curate_app, name="curate")
app.add_typer(round_app, name="round")
app.add_typer(release_app, name="release")
app.add_typer(judge_app, name="judge")
app.add_typer(adjudicate_app, name="adjudicate")
app.add_typer(import_app, name="import")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"h2htalk {__version__}")
        raise typer.Exit


for command in (
    evaluate.evaluate,
    runs.score,
    runs.report,
    runs.costs,
    runs.leaderboard,
    runs.compare,
    runs.correlate,
    runs.plan,
    gate.gate,
):
    app.command()(command)
app.command()(analyze.analyze)
judge_app.command("run")(judge.judge_run)
judge_app.command("probe")(judge.judge_probe)
adjudicate_app.command("open")(adjudicate.adjudicate_open)
adjudicate_app.command("close")(adjudicate.adjudicate_close)
judge_app.command("plan-labels")(calibration.judge_plan_labels)
judge_app.command("calibrate")(calibration.judge_calibrate)
curate_app.command("run")(curate.curate_run)
curate_app.command("funnel")(curate.curate_funnel)
curate_app.command("explain")(curate.curate_explain)
curate_app.command("identifiers")(curate.curate_identifiers)
curate_app.command("erase")(curate.curate_erase)
curate_app.command("purge")(curate.curate_purge)
round_app.command("open")(round.round_open)
round_app.command("status")(round.round_status)
round_app.command("close")(round.round_close)
round_app.command("reopen")(round.round_reopen)
round_app.command("remove-annotator")(round.round_remove_annotator)
round_app.command("list")(round.round_list)
release_app.command("build")(release.release_build)
release_app.command("check")(release.release_check)
release_app.command("diff")(release.release_diff)
release_app.command("publish")(release.release_publish)
release_app.command("pull")(release.release_pull)
split_app.command("list")(splits.split_list)
split_app.command("info")(splits.split_info)
split_app.command("check")(splits.split_check)
split_app.command("new")(splits.split_new)
split_app.command("diff")(splits.split_diff)
split_app.command("export")(splits.split_export)
split_app.command("from")(splits.split_from)
results_app.command("export")(results.results_export)
results_app.command("verify")(results.results_verify)
prompts_app.command("show")(prompts.prompts_show)
prompts_app.command("export")(prompts.prompts_export)
study_app.command("sap")(study.study_sap)
study_app.command("instructions")(study.study_instructions)
study_app.command("memory")(study.study_memory)
study_app.command("app")(study.study_app)
study_app.command("score")(study.study_score)
study_app.command("open-round")(study.study_open_round)
study_app.command("close-round")(study.study_close_round)
study_app.command("radar")(study.study_radar)
study_app.command("dossier")(study.study_dossier)
study_app.command("export")(study.study_export)
cases_app.command("new")(study.cases_new)
import_app.command("responses")(splits.import_responses)
import_app.command("authors")(splits.import_authors)


def main() -> None:
    """Entry point."""
    # Records hold no cycles. Python looks for some after 700 new objects: a fifth of the time of reading 467,000 votes.
    gc.set_threshold(50_000)
    with one_line_errors():
        try:
            _ = urlsplit(os.environ.get("HF_ENDPOINT", "")).port
        except ValueError as error:  # at its import the Hub's client would fail on it with a traceback
            raise ConfigError(f"HF_ENDPOINT has no usable URL ({error}): unset it, or correct it") from error
        app()


__all__ = ["app", "main"]

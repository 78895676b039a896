"""Score language models that act as emotional companions, and build the benchmarks that score them.

The functions that the commands call, loaded when they are first used:

    import h2htalk

    spec = h2htalk.EvaluateSpec(model="server:MODEL@http://127.0.0.1:8000/v1", split="mini", out="runs/mine")
    summary = h2htalk.evaluate(spec)
    h2htalk.load_run("runs/mine").scores()  # a pyarrow table
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from h2htalk.version import __version__ as __version__

# Read by pyarrow's allocator when it is loaded: what it reserves and nobody uses is then no memory of this process, and
# a Parquet file is read within a limit of memory (`data.bounded.parquet_rows`).
os.environ.setdefault("MIMALLOC_ARENA_EAGER_COMMIT", "0")

if TYPE_CHECKING:
    from h2htalk.analysis.analyze import AnalyzeSpec as AnalyzeSpec
    from h2htalk.analysis.analyze import analyze as analyze
    from h2htalk.benchmark.adjudicate import close_adjudication as close_adjudication
    from h2htalk.benchmark.adjudicate import open_adjudication as open_adjudication
    from h2htalk.benchmark.compare.comparison import compare as compare
    from h2htalk.benchmark.compare.correlation import correlate as correlate
    from h2htalk.benchmark.compare.planning import plan as plan
    from h2htalk.benchmark.evaluate import evaluate as evaluate
    from h2htalk.benchmark.gate.gate import gate as gate
    from h2htalk.benchmark.judge.judge_run import judge_run as judge_run
    from h2htalk.benchmark.judge.probe import judge_probe as judge_probe
    from h2htalk.benchmark.report.leaderboard import leaderboard as leaderboard
    from h2htalk.benchmark.results_export.export import export_results as export_results
    from h2htalk.benchmark.results_export.verify import verify_results as verify_results
    from h2htalk.benchmark.run import Run as Run
    from h2htalk.benchmark.run import load_run as load_run
    from h2htalk.benchmark.settings import EvaluateSpec as EvaluateSpec
    from h2htalk.benchmark.settings import JudgeSpec as JudgeSpec
    from h2htalk.benchmark.studies.run_study import load_study as load_study
    from h2htalk.benchmark.studies.run_study import run_study as run_study
    from h2htalk.benchmark.studies.run_study import score_study as score_study
    from h2htalk.benchmark.studies.settings import StudySpec as StudySpec
    from h2htalk.curation.check_guard import check_guard as check_guard
    from h2htalk.curation.curate import curate as curate
    from h2htalk.curation.reading.check_settings import CheckGuardSpec as CheckGuardSpec
    from h2htalk.curation.release.build import build_release as build_release
    from h2htalk.curation.release.build import check_release as check_release
    from h2htalk.data.splits import load_split as load_split
    from h2htalk.rounds.lifecycle import close_round as close_round
    from h2htalk.rounds.lifecycle import open_round as open_round
    from h2htalk.rounds.settings import RoundSpec as RoundSpec

_MODULES = {
    "AnalyzeSpec": "analysis.analyze",
    "CheckGuardSpec": "curation.reading.check_settings",
    "EvaluateSpec": "benchmark.settings",
    "JudgeSpec": "benchmark.settings",
    "RoundSpec": "rounds.settings",
    "Run": "benchmark.run",
    "StudySpec": "benchmark.studies.settings",
    "analyze": "analysis.analyze",
    "build_release": "curation.release.build",
    "check_guard": "curation.check_guard",
    "check_release": "curation.release.build",
    "close_adjudication": "benchmark.adjudicate",
    "close_round": "rounds.lifecycle",
    "compare": "benchmark.compare.comparison",
    "correlate": "benchmark.compare.correlation",
    "curate": "curation.curate",
    "evaluate": "benchmark.evaluate",
    "export_results": "benchmark.results_export.export",
    "gate": "benchmark.gate.gate",
    "judge_probe": "benchmark.judge.probe",
    "judge_run": "benchmark.judge.judge_run",
    "leaderboard": "benchmark.report.leaderboard",
    "load_run": "benchmark.run",
    "load_split": "data.splits",
    "load_study": "benchmark.studies.run_study",
    "open_adjudication": "benchmark.adjudicate",
    "open_round": "rounds.lifecycle",
    "plan": "benchmark.compare.planning",
    "run_study": "benchmark.studies.run_study",
    "score_study": "benchmark.studies.run_study",
    "verify_results": "benchmark.results_export.verify",
}

if not TYPE_CHECKING:
    __all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'h2htalk' has no attribute {name!r}")
    value = getattr(import_module(f"h2htalk.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *_MODULES])

"""Score language models that act as emotional companions, and build the benchmarks that score them.

The functions that the commands call, loaded when they are first used:

    import h2htalk

    spec = h2htalk.EvaluateSpec(model="server:MODEL@http://127.0.0.1:8000/v1", split="mini", out="runs/mine")
    summary = h2htalk.evaluate(spec)
    h2htalk.load_run("runs/mine").scores()  # a pyarrow table
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from h2htalk.version import __version__

if TYPE_CHECKING:
    from h2htalk.analysis.analyze import AnalyzeSpec, analyze
    from h2htalk.benchmark.adjudicate import close_adjudication, open_adjudication
    from h2htalk.benchmark.compare.comparison import compare, plan
    from h2htalk.benchmark.compare.correlation import correlate
    from h2htalk.benchmark.evaluate import evaluate
    from h2htalk.benchmark.gate.gate import gate
    from h2htalk.benchmark.judge.judge_run import judge_run
    from h2htalk.benchmark.judge.probe import judge_probe
    from h2htalk.benchmark.judge.settings import JudgeSpec
    from h2htalk.benchmark.report.leaderboard import leaderboard
    from h2htalk.benchmark.results_export.export import export_results
    from h2htalk.benchmark.results_export.verify import verify_results
    from h2htalk.benchmark.run import Run, load_run
    from h2htalk.benchmark.settings import EvaluateSpec
    from h2htalk.benchmark.studies.run_study import run_study, score_study
    from h2htalk.benchmark.studies.settings import StudySpec
    from h2htalk.curation.curate import curate
    from h2htalk.curation.release.build import build_release
    from h2htalk.curation.release.check import check_release
    from h2htalk.data.splits import load_split
    from h2htalk.rounds.closing import close_round
    from h2htalk.rounds.opening import open_round
    from h2htalk.rounds.settings import RoundSpec

_MODULES = {
    "AnalyzeSpec": "analysis.analyze",
    "EvaluateSpec": "benchmark.settings",
    "JudgeSpec": "benchmark.judge.settings",
    "RoundSpec": "rounds.settings",
    "Run": "benchmark.run",
    "StudySpec": "benchmark.studies.settings",
    "analyze": "analysis.analyze",
    "build_release": "curation.release.build",
    "check_release": "curation.release.check",
    "close_adjudication": "benchmark.adjudicate",
    "close_round": "rounds.closing",
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
    "open_adjudication": "benchmark.adjudicate",
    "open_round": "rounds.opening",
    "plan": "benchmark.compare.comparison",
    "run_study": "benchmark.studies.run_study",
    "score_study": "benchmark.studies.run_study",
    "verify_results": "benchmark.results_export.verify",
}

__all__ = [
    "AnalyzeSpec",
    "EvaluateSpec",
    "JudgeSpec",
    "RoundSpec",
    "Run",
    "StudySpec",
    "__version__",
    "analyze",
    "build_release",
    "check_release",
    "close_adjudication",
    "close_round",
    "compare",
    "correlate",
    "curate",
    "evaluate",
    "export_results",
    "gate",
    "judge_probe",
    "judge_run",
    "leaderboard",
    "load_run",
    "load_split",
    "open_adjudication",
    "open_round",
    "plan",
    "run_study",
    "score_study",
    "verify_results",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'h2htalk' has no attribute {name!r}")
    value = getattr(import_module(f"h2htalk.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

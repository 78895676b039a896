"""Parts of a reference folder: comparisons, gates, ranks, plans, exports and costs."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from unittest.mock import patch

from reference.run_parts import FORMATS
from reference.workplace import Part, Workplace
from support.doubles.providers import ProviderServer
from support.hosted_runs import MODELS, HostedRun

POLICIES = {
    "lenient": 'figure = "compliance.dialogue_base"\nmax = 0.99',
    "strict": 'figure = "lexical.itinerary_basic"\nmin = 0.9',
    "proof": 'figure = "s.dialogue_base"\nnon_inferior = 0.2',
    "slow": 'figure = "latency_95"\nmax = 1000.0',
}


def make_comparisons(work: Workplace) -> None:
    """Runs compared in pairs and threes, by several metrics, in every format."""
    runs = ("runs/ada", "runs/bo")
    for name in FORMATS:
        work.h2htalk("compare", *runs, "--metric", "s", "--format", name)
    work.h2htalk("compare", *runs, "--metric", "s", "--out", "comparisons/s")
    work.h2htalk("compare", *runs, "--metric", "lexical")
    work.h2htalk("compare", *runs, "--metric", "compliance")
    work.h2htalk("compare", *runs)
    chinese = ("runs/reference", "runs/cai", "runs/plain")
    words = ("--metric", "lexical", "--out", "comparisons/three")
    work.h2htalk("compare", *chinese, *words)


def make_gates(work: Workplace) -> None:
    """Gates that pass, that fail, and that are not tested."""
    for name, text in POLICIES.items():
        work.write(f"policies/{name}.toml", f"[[criteria]]\n{text}\n")

    def gate(name: str, run: str, *words: object, code: int) -> None:
        policy = ("--policy", f"policies/{name}.toml")
        pages = f"--markdown gates/{name}.md --html gates/{name}.html"
        data = f"--json gates/{name}.json --junit gates/{name}.xml"
        work.h2htalk("gate", run, *policy, *words, pages, data, code=code)

    Path("gates").mkdir()
    gate("lenient", "runs/ada", code=0)
    gate("strict", "runs/ada", code=4)
    gate("proof", "runs/bo", "--reference-run", "runs/ada", code=3)
    gate("slow", "runs/ada", code=0)
    work.h2htalk("gate", "runs/bo", "--reference-run", "runs/ada", code=3)
    work.h2htalk("gate", "runs/ada", "--reference-run", "runs/ada", code=3)


def make_ranks(work: Workplace) -> None:
    """Leaderboards, correlations and plans."""
    english = ("runs/ada", "runs/bo")
    for name in FORMATS:
        work.h2htalk("leaderboard", *english, "runs/reference runs/plain runs/cai --format", name)
    work.h2htalk("leaderboard", *english, "--paper")
    work.h2htalk("leaderboard", *english, "--metric", "s", "--format", "csv")
    work.h2htalk("leaderboard", "--check-paper")
    ratings = work.write("labels/ratings.csv", ratings_csv(Path("runs/ada")))
    for name in ("terminal", "csv", "json"):
        work.h2htalk("correlate", "runs/ada", "--ratings", ratings, "--format", name)
    work.h2htalk("correlate", "runs/ada", "--ratings", ratings, "--out", "correlations")
    work.h2htalk("plan", "--difference", 2)
    runs = ("--runs", "runs/ada", "runs/bo", "--items", 20, "--items", 77)
    work.h2htalk("plan", "--difference", 3, *runs, "--metric", "lexical")


def ratings_csv(run: Path) -> str:
    """Ratings of people from 1 to 5 of every item of a run."""
    lines = (run / "tables" / "items.csv").read_text(encoding="utf-8").splitlines()
    items = [line.partition(",")[0] for line in lines[1:]]
    rows = [f"{item},{1 + zlib.crc32(item.encode()) % 5}" for item in items]
    return "\n".join(["id,rating", *rows]) + "\n"


def make_exports(work: Workplace) -> None:
    """Results in the formats of others, and a bundle that is verified."""
    for run, code in (("ada", 3), ("plain", 0)):
        out = ("--out", f"exports/{run}-bundle")
        work.h2htalk("results", "export", f"runs/{run}", "--to", "bundle", *out)
        bundle = f"exports/{run}-bundle"
        work.h2htalk("results", "verify", bundle, "--split", "mini@1", code=code)
        words = ("--to", "every-eval-ever", "--organization", "Example", "--model", "example/m")
        out = ("--out", f"exports/{run}-every")
        work.h2htalk("results", "export", f"runs/{run}", *words, *out)


def make_hosted(work: Workplace) -> None:
    """Runs of hosted models with prices, retries, a limit of costs and batch jobs."""
    for number, provider in enumerate(("openai", "anthropic"), 5):
        for mode in ("live", "batch"):
            make_hosted_run(work, provider, mode, work.port(number))


def make_hosted_run(work: Workplace, provider: str, mode: str, port: int) -> None:
    folder = Path(f"hosted/{provider}-{mode}")
    folder.mkdir(parents=True)
    server = ProviderServer(faults={"truncated": 0.1, "refusal": 0.1})
    server.model.numbered = False
    server.port = port
    with server, patch.dict(os.environ, server.environment()):
        run = HostedRun(server, folder, MODELS[provider], 24, {"concurrency": 1})
        words = run.command(*(["--batch"] if mode == "batch" else []))
        work.h2htalk(*words, "--dry-run")
        work.h2htalk(*words)
    for name in ("terminal", "csv", "json"):
        work.h2htalk("costs", run.out, "--format", name)
    work.h2htalk("costs", run.out, "--list-calls")


PARTS = (
    Part("comparisons", make_comparisons, needs=("judgements",)),
    Part("gates", make_gates, needs=("judgements",)),
    Part("ranks", make_ranks, needs=("judgements",)),
    Part("exports", make_exports, needs=("judgements",)),
    Part("hosted", make_hosted),
)

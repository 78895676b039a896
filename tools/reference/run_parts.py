"""Parts of a reference folder: runs, shards, hosted runs, imports."""

from __future__ import annotations

import json
from pathlib import Path

from reference.doubles import dismissive, faulty, recovering, served, warm
from reference.workplace import Part, Workplace, spread_seconds

FIXTURES = Path(__file__).parents[2] / "tests" / "data" / "imports" / "fixtures"
FORMATS = ("terminal", "csv", "json", "latex")
ONE_BY_ONE = ("--concurrency", 1)  # calls are stored in the order in which they end


def make_runs(work: Workplace) -> None:
    """Runs of mini@1: English and Chinese, samples, failures, with and without an embedder."""
    work.write("once.toml", "attempts = 1\n")
    english = "--split mini@1 --language en --embedder minilm --concurrency 1"
    chinese = "--split mini@1 --language zh --embedder none --concurrency 1"
    languages = "--split mini@1 --embedder none --concurrency 1"
    with served(warm, work.port(0)) as model:
        work.h2htalk("evaluate", model, english, "--dry-run --out runs/dry")
        work.h2htalk("evaluate", model, english, "--out runs/ada --verbose")
        work.h2htalk("evaluate", model, languages, "--sap none --limit 44 --out runs/plain")
    with served(dismissive, work.port(7)) as model:
        work.h2htalk("evaluate", model, english, "--limit 44 --out runs/dana")
    with served(faulty, work.port(1)) as model:
        work.h2htalk("evaluate", model, english, "--spec once.toml --out runs/bo", code=3)
        samples = "--samples 3 --temperature 0.7 --spec once.toml --out runs/cai"
        work.h2htalk("evaluate", model, chinese, samples, code=3)
        unscored = "--filtered unscored --limit 44 --spec once.toml --out runs/unscored"
        work.h2htalk("evaluate", model, chinese, unscored, code=3)
        work.h2htalk("evaluate", model, chinese, unscored, code=3)
    with served(recovering, work.port(2)) as model:
        work.h2htalk("evaluate", model, chinese, "--limit 22 --thinking 0 --out runs/retried")
    work.write("replies.jsonl", script_lines())
    truncated = "--limit 44 --max-tokens 40 --no-baselines --out runs/scripted"
    work.h2htalk("evaluate scripted:replies.jsonl", chinese, truncated)
    work.h2htalk("evaluate baseline:random-reference", languages, "--out runs/reference")
    spread_seconds(Path("runs/ada"))
    work.h2htalk("score runs/ada")
    print_reports(work)


def script_lines() -> str:
    lines = [
        {"id": "mini-zh-dialogue-base-01", "text": ""},
        {"id": "mini-zh-dialogue-base-03", "text": "我在听，", "finish_reason": "length"},
        {"id": "mini-zh-dialogue-base-05", "text": "", "finish_reason": "content_filter"},
        {"id": "*", "text": "我在听，你慢慢说。"},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def print_reports(work: Workplace) -> None:
    """Tables of runs in every format, and runs scored again in other ways."""
    for run, code in (("ada", 0), ("cai", 3)):
        for name in FORMATS:
            work.h2htalk("report", f"runs/{run}", "--format", name, code=code)
    work.h2htalk("report", "runs/bo", "--verbose", code=3)
    work.h2htalk("score", "runs/scripted", "--rouge", "recall")
    work.h2htalk("score", "runs/retried", "--embedder", "none", "--filtered", "unscored")


def make_shards(work: Workplace) -> None:
    """A run in three shards, merged before and after the last one is made."""
    words = ("--split", "mini@1", "--language", "en", "--limit", 33, "--embedder", "none")
    with served(faulty, work.port(3)) as model:
        for number, code in ((1, 3), (2, 3), (3, 0)):
            shard = ("--shard", f"{number}/3", "--out", "shards", *ONE_BY_ONE)
            work.h2htalk("evaluate", model, *words, *shard, code=code)
            if number == 2:
                work.h2htalk("merge", "shards", "--out", "merged", code=3)
    work.h2htalk("merge", "shards", "--out", "merged", code=3)


def make_imports(work: Workplace) -> None:
    """Runs of other tools' files: responses, logs of Inspect AI, tables."""
    lines = [
        {"id": f"mini-en-dialogue-base-{number:02}", "text": f"I am here, {number}."}
        for number in (1, 3, 5, 6)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    replies = work.write("others.jsonl", text)
    words = ("--split", "mini@1", "--embedder", "none", "--out", "runs/imported")
    work.h2htalk("import", "responses", replies, *words, code=3)


PARTS = (
    Part("runs", make_runs),
    Part("shards", make_shards),
    Part("imports", make_imports),
)

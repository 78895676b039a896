"""Parts of a reference folder: judges, their calibration, and rounds of people who rate answers."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path

from reference.doubles import served, warm
from reference.workplace import Part, Workplace
from support.judged_runs import annotators, judge_file, rate


def score_of(item: str) -> int | None:
    """What a judge gives to an item from 0 to 5; None: a reply that cannot be read."""
    number = zlib.crc32(item.encode()) % 20
    return None if number == 19 else min(5, number // 3)


def milder_score_of(item: str) -> int:
    """What a second judge gives: one point more to every second item."""
    return min(5, (score_of(item) or 0) + zlib.crc32(item.encode()) % 2)


def rating_of(item: str) -> int:
    """What people give to an item."""
    return max(0, (score_of(item) or 2) - zlib.crc32(item.encode()) % 3 % 2)


def make_judgements(work: Workplace) -> None:
    """Runs judged by one judge and by a panel, and a judge that is probed."""
    judges = [judge_file(Path(f"runs/{run}"), score_of, f"judge-of-{run}") for run in ("ada", "bo")]
    lines = [Path(judge.removeprefix("scripted:")).read_text(encoding="utf-8") for judge in judges]
    strict = f"scripted:{work.write('strict.jsonl', ''.join(lines))}"
    work.h2htalk("judge", "run", "runs/ada", "--judge", strict, "--dry-run")
    work.h2htalk("judge", "run", "runs/ada", "--judge", strict)
    work.h2htalk("judge", "run", "runs/bo", "--judge", strict, code=3)
    first = judge_file(Path("runs/dana"), score_of, "strict-dana")
    second = judge_file(Path("runs/dana"), milder_score_of, "mild-dana")
    panel = ("--judge", first, "--judge", second)
    work.h2htalk("judge", "run", "runs/dana", *panel, "--verbose")
    work.h2htalk("judge", "run", "runs/dana", *panel, "--scope", "all", "--dry-run")
    samples = judge_file(Path("runs/cai"), milder_score_of, "mild-cai")
    work.h2htalk("judge", "run", "runs/cai", "--judge", samples, code=3)
    with served(warm, work.port(4)) as judge:
        words = ("--language", "en", "--out", "probe")
        work.h2htalk("judge", "probe", judge, *words, code=3)
    work.h2htalk("report", "runs/ada")


def make_calibration(work: Workplace) -> None:
    """Labels that people should give, and what their labels say about a judge."""
    work.h2htalk("judge", "plan-labels", "runs/ada", "--half-width", 0.5)
    words = ("--labels", 16, "--out", "labels/drawn.csv")
    Path("labels").mkdir()
    work.h2htalk("judge", "plan-labels", "runs/ada", *words)
    with open("labels/drawn.csv", encoding="utf-8", newline="") as file:
        items = [row["id"] for row in csv.DictReader(file)]
    filled = work.write("labels/filled.csv", labels_csv(items))
    few = work.write("labels/few.csv", labels_csv(items[:3]))
    work.h2htalk("judge", "calibrate", "runs/ada", "--human", filled)
    work.h2htalk("judge", "calibrate", "runs/ada", "--human", filled, "--format", "json")
    work.h2htalk("judge", "calibrate", "runs/ada", "--human", few, "--random-sample")
    work.h2htalk("judge", "calibrate", "runs/ada", "--human", filled)
    work.h2htalk("report", "runs/ada", "--verbose")


def labels_csv(items: list[str]) -> str:
    lines = [f"{item},{rating_of(item)}" for item in items]
    return "\n".join(["id,rating", *lines]) + "\n"


def make_adjudication(work: Workplace) -> None:
    """Low answers of a judged run, rated by two people whose mean replaces the judge's rating."""
    Path("people").mkdir(exist_ok=True)
    people = ("--annotators", annotators(Path("people")), "--overlap", 2)
    words = ("--out", "rounds/low", "--budget", 6, *people)
    work.h2htalk("adjudicate", "open", "runs/dana", *words)
    rate(Path("rounds/low"), lambda item, _: rating_of(item))
    work.h2htalk("round", "status", "rounds/low")
    work.h2htalk("round", "close", "rounds/low")
    work.h2htalk("adjudicate", "close", "runs/dana", "rounds/low", "--verbose")


PARTS = (
    Part("judgements", make_judgements, needs=("runs",)),
    Part("calibration", make_calibration, needs=("judgements",)),
    Part("adjudication", make_adjudication, needs=("judgements",)),
)

"""Reference folders: what a comparison finds, what its masks leave, and that one commit makes equal folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from reference.comparison import compare_folders
from reference.masks import masked
from reference.workplace import Part
from reference_folder import choose_parts

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "reference_folder.py"
SUMMARY = '{\n  "overall": 14.893,\n  "started": "2026-11-30T07:10:40.113Z"\n}\n'
PAGE = "<p>p = 0.042</p>\n<p>These answers are not above the baseline.</p>\n"


def write_folder(
    folder: Path, summary: str = SUMMARY, page: str = PAGE, score: float = 0.5
) -> None:
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "summary.json").write_text(summary)
    (folder / "run" / "report.html").write_text(page)
    (folder / "run" / "calls.lock").write_text(str(folder))
    pq.write_table(pa.table({"id": ["a"], "s": [score]}), folder / "run" / "scores.parquet")


def test_equal_folders_differ_in_times_and_locks_alone(tmp_path: Path) -> None:
    write_folder(tmp_path / "a")
    write_folder(tmp_path / "b", SUMMARY.replace("07:10:40.113", "09:59:01.2"))
    assert compare_folders(tmp_path / "a", tmp_path / "b") == []


@pytest.mark.parametrize(
    ("changes", "file", "line", "texts"),
    [
        ({"summary": SUMMARY.replace("14.893", "14.894")}, "summary.json", 2, ("14.893", "14.894")),
        ({"page": PAGE.replace("0.042", "0.043")}, "report.html", 1, ("0.042", "0.043")),
        (
            {"page": PAGE.replace("are not", "are")},
            "report.html",
            2,
            ("are not above", "are above"),
        ),
        ({"score": 0.5000001}, "scores.parquet", 2, ("0.5}", "0.5000001}")),
    ],
)
def test_a_planted_change_is_printed_with_its_line(
    tmp_path: Path,
    changes: dict[str, str | float],
    file: str,
    line: int,
    texts: tuple[str, str],
) -> None:
    write_folder(tmp_path / "a")
    write_folder(tmp_path / "b", **changes)  # type: ignore[arg-type]
    [difference] = compare_folders(tmp_path / "a", tmp_path / "b")
    assert (difference.file, difference.line) == (f"run/{file}", line)
    assert texts[0] in difference.first
    assert texts[1] in difference.second


def test_the_order_of_parallel_calls_may_differ_and_their_number_may_not(tmp_path: Path) -> None:
    for name, lines in (("a", "one\ntwo\n"), ("b", "two\none\n"), ("c", "two\none\none\n")):
        for part in ("studies/sap/judgements", "runs/ada"):
            path = tmp_path / name / part / "calls.jsonl"
            path.parent.mkdir(parents=True)
            path.write_text(lines)
    files = [difference.file for difference in compare_folders(tmp_path / "a", tmp_path / "b")]
    assert files == ["runs/ada/calls.jsonl"]
    assert len(compare_folders(tmp_path / "a", tmp_path / "c")) == 2


def test_a_missing_file_and_another_file_are_found_and_the_exit_code_says_so(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        write_folder(tmp_path / name)
    (tmp_path / "a" / "run" / "report.html").unlink()
    (tmp_path / "b" / "run" / "summary.json").unlink()
    words = [sys.executable, str(TOOL), "compare", str(tmp_path / "a"), str(tmp_path / "b")]
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert "run/report.html:0\n  - (no such file)\n  + (a file)" in completed.stdout
    assert "run/summary.json:0\n  - (a file)\n  + (no such file)" in completed.stdout
    assert completed.stdout.endswith("2 differences\n")


@pytest.mark.parametrize(
    "line",
    [
        "overall: lexical mean 14.89 ±2.6, 3 sessions, p 0.0421",
        "latency of a call: 4.30 s median, 8.61 s 95th percentile;",
        '  "seconds": 4.301,',
        '"seconds":4.301,"usd":"0.00436375"',
        "latency_95 8.6114 seconds, at most 1000 seconds",
        "paid $12.50 for 2,026 calls; 2026 of 2030 items",
        "seen on 2026-10-02 at example.org",
        "127.0.0.1:21711",
    ],
)
def test_no_mask_hides_a_figure(line: str) -> None:
    assert masked(line) == line


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("answering: 0.3 s; latency 1.0 s", "answering: SECONDS; latency 1.0 s"),
        ("answering: 0.3 s in 3 sessions;", "answering: SECONDS in 3 sessions;"),
        (
            '{"guidelines":"/srv/b/h2htalk/benchmark/studies/guidelines","seed":3}',
            '{"guidelines":"CHECKOUT/h2htalk/benchmark/studies/guidelines","seed":3}',
        ),
        ("time answering,1.4 s", "time answering,SECONDS"),
        ("started 2026-11-30 07:10", "started DATE TIME"),
        ("shards/20261130T071126-550f836a", "shards/TIME-550f836a"),
    ],
)
def test_masks_keep_the_words_around_a_time(line: str, after: str) -> None:
    assert masked(line) == after


def test_a_part_is_made_after_those_that_it_needs() -> None:
    listed = [
        Part("runs", print),
        Part("studies", print),
        Part("judgements", print, needs=("runs",)),
        Part("gates", print, needs=("judgements",)),
    ]
    names = [part.name for part in choose_parts(listed, ["gates"])]
    assert names == ["runs", "judgements", "gates"]
    assert choose_parts(listed, []) == listed
    with pytest.raises(SystemExit, match="unknown part 'gate'; choose from runs, studies"):
        choose_parts(listed, ["gate"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_one_commit_makes_equal_folders_whatever_the_order_of_sets(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second" / "deeper"]
    for seed, folder in enumerate(folders):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
        words = [sys.executable, str(TOOL), "make", str(folder), "--only", "shards"]
        subprocess.run(words, env=environment, check=True)
    assert compare_folders(*folders) == []
    commands = sorted((folders[0] / "commands").iterdir())
    assert "exit code 3\n--- output\n" in commands[-1].read_text()

"""All commands but `evaluate`, as a user types them: what they print and write, and with which exit code they end."""

from __future__ import annotations

import json
import os
from pathlib import Path

from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from support.command_line import h2htalk, h2htalk_here, scripted


def test_score_and_report_work_on_a_run_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    h2htalk_here(
        "evaluate", scripted(tmp_path), "--split", "mini@1", "--embedder", "none", "--out", out
    )
    (tmp_path / "script.jsonl").unlink()
    recall = h2htalk("score", out, "--rouge", "recall", "--verbose")
    assert recall.returncode == 0, recall.stderr
    assert "rouge=recall" in recall.stdout
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    for form, start in (("csv", "model,"), ("json", "["), ("latex", "\\begin{table")):
        done = h2htalk_here("report", out, "--format", form)
        assert (done.returncode, start in done.stdout) == (0, True), done.stderr
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before, (
        "printing a table wrote into the run"
    )
    costs = h2htalk_here("costs", out, "--list-calls")
    assert (costs.returncode, costs.stdout) == (0, "No call has a recorded price.\n")
    for words in (
        ("report", out, "--format", "pdf"),
        ("score", out, "--rouge", "bogus"),
        ("report", tmp_path),
    ):
        assert h2htalk_here(*words).returncode == 2


def test_prompts_show_prints_what_a_model_sees_and_names_near_ids() -> None:
    assert "--- system ---" in h2htalk_here("prompts", "show", "mini-en-dialogue-base-01").stdout
    lines = h2htalk_here("prompts", "show", "--all", "--sap", "none").stdout.splitlines()
    assert (len(lines), set(json.loads(lines[0]))) == (
        len(load_split("mini").scenarios),
        {"id", "messages"},
    )
    wrong = h2htalk_here("prompts", "show", "mini-en-dialogue-bass-01")
    assert (wrong.returncode, "mini-en-dialogue-base-01" in wrong.stderr) == (2, True)
    for words in ((), ("--all", "mini-en-dialogue-base-01")):
        done = h2htalk_here("prompts", "show", *words)
        assert (done.returncode, "name a scenario by its id, or every one" in done.stderr) == (
            2,
            True,
        )


def test_an_empty_name_is_not_the_folder_one_stands_in(tmp_path: Path) -> None:
    for words in (("split", "export", "mini@1"), ("import", "authors", ".")):
        done = h2htalk(*words, "--out", "", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, "error: --out is empty; name a folder\n")
    assert list(tmp_path.iterdir()) == []


def test_an_import_of_something_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """The second reading of a pipe waited for ever."""
    os.mkfifo(tmp_path / "pipe")
    words = ("import", "responses", tmp_path / "pipe", "--split", "mini@1", "--embedder", "none")
    for name, named in (
        (" ", "--name is empty"),
        ("m", "is not a file; save the responses into one"),
    ):
        done = h2htalk_here(*words, "--name", name, "--out", tmp_path / "run")
        assert (done.returncode, named in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def test_split_commands(tmp_path: Path) -> None:
    assert "mini@1" in h2htalk_here("split", "list").stdout
    assert "1,882" in h2htalk_here("split", "info", "mini@1").stdout
    for form in ("jsonl", "parquet"):
        out = tmp_path / form
        assert (
            h2htalk_here("split", "export", "mini@1", "--out", out, "--format", form).returncode
            == 0
        )
        assert load_split(str(out)).fingerprint == load_split("mini@1").fingerprint
    assert h2htalk_here("split", "export", "mini@1", "--out", tmp_path / "jsonl").returncode == 2


def test_responses_from_elsewhere_are_scored_and_what_is_missing_stays_unscored(
    tmp_path: Path,
) -> None:
    answers = tmp_path / "answers.jsonl"
    write_jsonl(
        answers,
        ({"id": s.id, "response": s.reference} for s in load_split("mini@1").scenarios[:-1]),
    )
    command = (
        "import",
        "responses",
        answers,
        "--split",
        "mini@1",
        "--name",
        "perfect",
        "--embedder",
        "none",
        "--out",
    )
    done = h2htalk_here(*command, tmp_path / "run")
    assert (done.returncode, "missing" in done.stdout) == (3, True)
    write_jsonl(answers, [{"id": "somewhere-else-1", "response": "Hello."}])
    done = h2htalk_here(*command, tmp_path / "run2")
    assert (done.returncode, "somewhere-else-1" in done.stderr) == (2, True)
    assert not (tmp_path / "run2").exists()


def test_leaderboard_checks_the_paper(tmp_path: Path) -> None:
    done = h2htalk_here("leaderboard", "--check-paper")
    sentence = "The others, last in the table: DeepSeek-R1-Distill-Qwen-1.5B-Pro, QwQ-32B-Preview."
    assert (done.returncode, "35 of 37 readable rows agree within 0.15" in done.stdout) == (0, True)
    assert sentence in " ".join(done.stdout.split())
    rows = json.loads(h2htalk_here("leaderboard", "--check-paper", "--format", "json").stdout)
    assert (len(rows), sum(row["agrees"] for row in rows)) == (37, 35)
    for words in (("--format", "latex"), (tmp_path,)):
        assert h2htalk_here("leaderboard", "--check-paper", *words).returncode == 2

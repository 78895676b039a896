"""Following a run or study: what is shown while it grows, and how the command sees that it ended."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from rich.console import Console

from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.benchmark.summary import read_summary
from h2htalk.benchmark.watch import Follower, is_written, watch
from h2htalk.data.files import json_line, write_jsonl, writer_lock
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk_here, scripted
from support.doubles.loopback import LoopbackServer
from support.kills import wait_until
from support.runs import baseline_run
from support.studies import cases_of, judge_of, spec, studied, write_script

LOCKS = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="this system does not list its locks"
)


def shown(path: Path, width: int = 80, terminal: bool = False, **how: float) -> tuple[str, str]:
    file = io.StringIO()
    end = watch(
        path, Console(file=file, width=width, force_terminal=terminal, legacy_windows=False), **how
    )
    return file.getvalue(), end


def cut(path: Path, lines: int, torn: bytes = b"") -> bytes:
    """Keep the first lines of a file; return the others."""
    every = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(every[:lines]) + torn)
    return b"".join(every[lines:])


def append(run: Path, *records: Mapping[str, Any]) -> None:
    with (run / "calls.jsonl").open("a") as file:
        file.writelines(map(json_line, records))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return baseline_run(tmp_path / "run")


def test_a_run_is_followed_line_by_line_and_a_torn_line_waits(run: Path) -> None:
    calls = run / "calls.jsonl"
    rest = cut(calls, 5, b'{"id":"mi')
    follower = Follower(run)
    for _ in range(2):  # nothing is counted twice
        follower.read()
        assert follower.lines()[0].startswith("generate: 5/22 answered  23%")
    cut(calls, 5)
    with calls.open("ab") as file:
        file.write(rest)
    follower.read()
    assert follower.lines()[0] == "generate: 22/22 answered  100%"
    mean = read_summary(run / "summary.json").rows.lexical["items_mean"]
    assert f"lexical: {mean.value:.2f}" in follower.lines()[1]  # the figure of the finished run
    assert "n 22 of 22 items" in follower.lines()[1]


def test_failures_are_told_by_reason_until_an_answer_comes(run: Path) -> None:
    calls = run / "calls.jsonl"
    rest = cut(calls, 20)
    failure = {"reason": "timeout", "message": "no answer within 60 s\x1b[2J"}
    append(
        run,
        *(
            {"id": json.loads(line)["id"], "sample": 0, "failure": failure}
            for line in rest.splitlines()
        ),
    )
    output, _ = shown(run, patience=0)
    assert "20/22 answered" in output
    assert "2 calls failed (timeout): no answer within 60 s\\x1b[2J" in output
    with calls.open("ab") as file:
        file.write(rest)
    output, _ = shown(run, patience=0)
    assert "failed" not in output


def test_money_of_paid_calls_is_shown_with_what_is_unknown(run: Path) -> None:
    about = {
        "stage": "generate",
        "asked": "openai:x",
        "id": "a",
        "samples": [0],
        "bound": [9, 9],
        "prompts": ["p"],
    }
    calls = [
        {"reserved": number, **about, "worst": worst} for number, worst in ((1, "0.5"), (2, None))
    ]
    append(run, *calls, {"call": 1, "cost": "possibly_paid", "reason": "timeout"})
    output, _ = shown(run, patience=0)
    assert "at most 0.5000 more for 1 call whose reply never arrived" in output
    assert "an unknown amount more for 1 call still open" in output


@pytest.mark.parametrize("terminal", [False, True])
def test_a_finished_run_is_shown_once(run: Path, terminal: bool) -> None:
    output, end = shown(run, terminal=terminal)
    assert (end, (run / "report.html").exists()) == (f"finished: {run / 'report.html'}", True)
    assert ("last, generate mini-" in output) == terminal
    assert "mean of the items so far, lexical" in output
    done = h2htalk_here("watch", run)
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", end)


def test_the_last_answer_is_escaped_and_short(run: Path) -> None:
    last = json.loads((run / "calls.jsonl").read_bytes().splitlines()[-1])
    append(run, {**last, "text": "\x1b[31mred " + "很长" * 500})
    output, _ = shown(run, terminal=True, patience=0)
    assert ("\\x1b[31mred" in output, output.count("很") < 200) == (True, True)


@LOCKS
def test_the_writer_s_lock_is_seen_and_not_taken(run: Path) -> None:
    calls = run / "calls.jsonl"
    assert is_written(calls) is False
    with ThreadPoolExecutor() as pool:
        with writer_lock(calls):
            assert is_written(calls) is True
            ended = pool.submit(shown, run, pace=0.01)
            assert not wait([ended], 0.5).done  # a run that is scored again is not finished
        ended.result(200)


@LOCKS
def test_a_killed_writer_is_noticed(run: Path) -> None:
    (run / "summary.json").unlink()
    code = "import sys, time; from pathlib import Path; from h2htalk.data.files import AppendLog\n"
    code += "log = AppendLog(Path(sys.argv[1])); print('open', flush=True); time.sleep(60)"
    calls = run / "calls.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(calls)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout.readline()
        assert is_written(calls) is True
        writer.kill()
    assert "its writer is gone" in shown(run, pace=0.01, patience=0.1)[1]


def test_a_system_that_lists_no_locks_is_waited_for_longer(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "summary.json").unlink()
    monkeypatch.setattr("h2htalk.benchmark.watch.is_written", lambda path: None)
    begun = time.monotonic()
    assert "its writer is gone" in shown(run, pace=0.01, patience=0.02)[1]
    assert time.monotonic() - begun >= 0.4


def test_ctrl_c_ends_it_and_leaves_the_run_alone(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "summary.json").unlink()
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    monkeypatch.setattr("h2htalk.benchmark.watch.time.sleep", Mock(side_effect=KeyboardInterrupt))
    assert shown(run)[1] == "no longer watched; what it follows goes on"
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_study_shows_the_points_that_its_judge_finds_met(tmp_path: Path) -> None:
    """Planted replies were answered and not counted among what is asked: 44/4 answered, 1100%."""
    result = studied(
        tmp_path, "instructions", judge=judge_of(cases_of("instructions", "en")), limit=4
    )
    output, end = shown(result.study.path)
    assert "judge's points met so far: 100.0 %" in output
    assert "44/44 answered  100%" in output  # with 40 planted replies
    assert end.startswith("finished: ")


def test_points_of_a_reply_and_replies_of_a_chat_are_no_independent_values(tmp_path: Path) -> None:
    """The first figures looked more certain than those of the study."""
    messages = [
        {"role": role, "content": "hi"} for _ in range(30) for role in ("user", "companion")
    ]
    write_jsonl(
        tmp_path / "chats.jsonl",
        [{"id": one, "language": "en", "messages": messages} for one in "ab"],
    )
    answers: dict[str, object] = {f"p{k}": {"evidence": "-", "answer": True} for k in range(1, 11)}
    judge = write_script(
        tmp_path / "judge.jsonl",
        json.dumps(answers | {"perception": {"evidence": "-", "score": 3}}),
    )
    run_study(
        spec("logs", "logs:chats", tmp_path / "study", split=tmp_path / "chats.jsonl", judge=judge)
    )
    assert "so far: 10.0 % (0.5 to 72.1), 60 of 600" in shown(tmp_path / "study")[0]


def test_a_watched_command_gives_the_same_without_control_sequences(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    run, seen = tmp_path / "run", []
    words = (
        "evaluate",
        scripted(tmp_path),
        "--split",
        "mini",
        "--limit",
        22,
        "--embedder",
        "none",
        "--out",
        run,
    )
    for more in ((), ("--watch",)):
        done = h2htalk_here(*words, *more)
        files = {
            one.name: one.read_bytes() if one.suffix == ".parquet" else b""
            for one in run.rglob("*")
        }
        seen.append((done.returncode, files, done.stdout.partition("started: ")[0]))
        run.rename(tmp_path / f"run-{len(more)}")
    assert seen[0] == seen[1]
    assert "\ngenerate: 22/22 answered  100%; mean of the items so far" in f"\n{done.stderr}"
    assert "generate  " not in done.stderr  # the progress line
    assert "\x1b" not in done.stderr
    assert h2htalk_here(*words, "--shard", "1/2", "--watch").stderr.startswith(
        "error: --shard cannot be combined with --dry-run"
    )


def test_ctrl_c_in_a_terminal_leaves_it_whole_and_a_run_to_resume(tmp_path: Path) -> None:
    screen, (ours, theirs) = bytearray(), pty.openpty()
    words = (
        "--split",
        "mini",
        "--embedder",
        "none",
        "--concurrency",
        "2",
        "--watch",
        "--out",
        str(tmp_path / "run"),
    )
    with LoopbackServer(latency=0.3) as server:
        command = [sys.executable, "-m", "h2htalk", "evaluate", server.spec, *words]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            wait_until(lambda: screen.extend(os.read(ours, 65_536)) or b"last, generate" in screen)
            process.send_signal(signal.SIGINT)
            wait_until(
                lambda: (
                    screen.extend(os.read(ours, 65_536)) or b"stopped; what is finished" in screen
                )
            )
        assert process.returncode == 130
    assert screen.rindex(b"\x1b[?25h") > screen.rindex(b"\x1b[?25l")  # the cursor is shown again
    assert b"generate  " not in screen  # the progress line
    assert len((tmp_path / "run" / "calls.jsonl").read_bytes().splitlines()) >= 1


def test_what_cannot_be_followed_says_so(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run and no study; `h2htalk runs"):
        Follower(tmp_path)
    follower = Follower(run)
    follower.read()
    cut(run / "calls.jsonl", 3)
    with pytest.raises(DataError, match="became shorter"):
        follower.read()
    with (run / "calls.jsonl").open("a") as file:
        file.write("no JSON\n")
    assert h2htalk_here("watch", run).returncode == 2

"""A study killed by kill -9 behind a paid API: every reply is kept, none is paid for twice, the figures are the
same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from command_line import h2htalk_here
from kills import killed_at
from providers import ProviderServer, price_file
from studies_made import REPLY, cases_of, judge_lines, spec, write_script

from h2htalk.benchmark.studies.run_study import load_study, run_study


def stored(study: Path) -> list[str]:
    """The ids of the stored replies, whole lines only."""
    return [line["id"] for line in stored_lines(study)]


def called(study: Path) -> int:
    """How many of them were called for: equal requests share a call."""
    return sum("copy" not in line for line in stored_lines(study))


def stored_lines(study: Path) -> list[dict[str, Any]]:
    path = study / "calls.jsonl"
    lines = map(json.loads, path.read_bytes().split(b"\n")[:-1] if path.exists() else ())
    return [line for line in lines if "text" in line]


def test_no_paid_call_is_repeated_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(price_file())
    words = ["study", "sap", "openai:gpt-test", "--arms", "sap,none", "--limit", "10", "--language", "en"]
    words += ["--embedder", "none", "--concurrency", "3", "--prices", str(tmp_path / "prices.toml"), "--out"]
    with ProviderServer(latency=0.03) as server:
        whole, study = tmp_path / "whole", tmp_path / "study"
        command = [sys.executable, "-m", "h2htalk", *words]
        subprocess.run([*command, str(whole)], env=server.environment(), check=True, stdout=subprocess.DEVNULL)
        number, before = len(stored(whole)), len(server.charged())
        assert before == called(whole) < number
        for stop in (number // 5, number // 2, number - 4):
            process = subprocess.Popen(
                [*command, str(study)],
                env=server.environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            limit = time.monotonic() + 60
            while len(stored(study)) < stop and process.poll() is None and time.monotonic() < limit:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        kept, paid = called(study), len(server.charged())
        assert paid - before - kept <= 3 * 3  # at most what was in flight at each kill
        subprocess.run([*command, str(study)], env=server.environment(), check=True, stdout=subprocess.DEVNULL)
        assert len(server.charged()) - paid == before - kept
    done = h2htalk_here("costs", whole)  # said that a study is no run
    assert f"for {before:,} calls" in done.stdout, done.stderr
    assert len(stored(study)) == len(set(stored(study))) == number
    # The double numbers its replies, so that values may differ; what was asked does not.
    places = [
        {(row.arm, row.figure, row.item, row.place) for row in load_study(one).observations} for one in (whole, study)
    ]
    assert places[0] == places[1]


def test_killed_before_any_change_of_a_file_a_study_ends_with_the_same_figures(tmp_path: Path) -> None:
    model = write_script(tmp_path / "model.jsonl", [{"id": "*", "text": REPLY["zh"]}])
    lines = judge_lines("none", cases_of("high_risk", "zh"), lambda *_: False, lambda case, place: REPLY["zh"])
    judge = write_script(tmp_path / "judge.jsonl", lines)
    asked = {"arms": ("none",), "judge": judge, "language": "zh", "limit": 2}
    run_study(spec("sap", model, tmp_path / "whole", **asked))
    expected = (tmp_path / "whole" / "observations.parquet").read_bytes()
    for step in range(0, 200, 5):
        out = tmp_path / f"study-{step}"
        if not killed_at(step, lambda out=out: run_study(spec("sap", model, out, **asked))):  # type: ignore[misc]
            break
        run_study(spec("sap", model, out, **asked))
        assert (out / "observations.parquet").read_bytes() == expected
    else:
        raise AssertionError("more changes than were tried")

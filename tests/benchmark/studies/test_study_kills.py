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


def stored(study: Path) -> list[dict[str, Any]]:
    """The stored replies, whole lines only; equal requests share a call, and all but one have `copy`."""
    path = study / "calls.jsonl"
    lines = map(json.loads, path.read_bytes().split(b"\n")[:-1] if path.exists() else ())
    return [line for line in lines if "text" in line]


def called(study: Path) -> int:
    return sum("copy" not in line for line in stored(study))


def test_no_paid_call_is_repeated_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(price_file())
    words = ["study", "sap", "openai:gpt-test", "--arms", "sap,none", "--limit", "6", "--language", "en"]
    words += ["--concurrency", "3", "--prices", str(tmp_path / "prices.toml"), "--out"]
    whole, study, command = tmp_path / "whole", tmp_path / "study", [sys.executable, "-m", "h2htalk", *words]
    with ProviderServer(latency=0.03) as server:
        quiet: dict[str, Any] = {"env": server.environment(), "stdout": subprocess.DEVNULL}
        subprocess.run([*command, str(whole)], check=True, **quiet)
        number, before = len(stored(whole)), len(server.charged())
        assert before == called(whole) < number
        for stop in (number // 5, number - 4):
            process = subprocess.Popen([*command, str(study)], stderr=subprocess.DEVNULL, **quiet)
            limit = time.monotonic() + 60
            while len(stored(study)) < stop and process.poll() is None and time.monotonic() < limit:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        kept, paid = called(study), len(server.charged())
        assert paid - before - kept <= 2 * 3  # at most what was in flight at each kill
        subprocess.run([*command, str(study)], check=True, **quiet)
        assert len(server.charged()) - paid == before - kept
    done = h2htalk_here("costs", whole)  # said that a study is no run
    assert f"for {before:,} calls" in done.stdout, done.stderr
    assert len(stored(study)) == len({line["id"] for line in stored(study)}) == number
    # The double numbers its replies, so that values may differ; what was asked does not.
    rows = [load_study(one).observations for one in (whole, study)]
    places = [{(row.arm, row.figure, row.item, row.place) for row in own} for own in rows]
    assert places[0] == places[1]


def test_killed_before_any_change_of_a_file_a_study_ends_with_the_same_figures(tmp_path: Path) -> None:
    model = write_script(tmp_path / "model.jsonl", REPLY["zh"])
    judge = write_script(tmp_path / "judge.jsonl", judge_lines(cases_of("high_risk", "zh"), lambda *_: False))
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

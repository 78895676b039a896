"""A run with vLLM that is killed loses nothing and asks nothing twice; what vLLM refuses is an error with its log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError
from support.doubles.vllm_double import family, wait_until_gone
from support.kills import wait_until
from support.live.vllm_runs import evaluate_command

# Two starts of the engine.
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

ITEMS, TOKENS = 11, 16
# Without SAP, which makes prompts four times as long: transformers reads every one anew.
OPTIONS = ("--limit", ITEMS, "--max-tokens", TOKENS, "--sap", "none")


def start(model: Path, out: Path) -> subprocess.Popen[str]:
    # One request at a time: items finish one after the other, as they do in a long run.
    options = (*OPTIONS, "--engine-option", "max_num_seqs=1")
    return subprocess.Popen(
        evaluate_command(f"vllm:{model}", out, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is sent to a whole group: not to ours
    )


def answers(out: Path) -> dict[str, Response]:
    return {
        key[0]: one for key, one in RunFolder(out).answers().items() if isinstance(one, Response)
    }


def test_ctrl_c_while_the_engine_starts(tiny: Path, tmp_path: Path) -> None:
    run = start(tiny, tmp_path / "run")
    # The supervisor, the server, its engine.
    wait_until(
        lambda: run.poll() is not None or len(family(run.pid)) >= 3,
        "the engine does not start",
        200,
    )
    processes = family(run.pid)
    assert run.poll() is None, run.communicate()
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=600)
    assert run.returncode == 130
    assert "Traceback" not in stderr
    wait_until_gone(processes)


def test_kill_9_half_way_loses_nothing_and_a_restart_asks_only_the_rest(
    smollm2: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    killed = start(smollm2, out)
    begun = (out / "run.json").exists
    wait_until(
        lambda: killed.poll() is not None or (begun() and len(answers(out)) >= 3), "no answers", 400
    )
    assert killed.poll() is None, killed.communicate()
    processes = family(killed.pid)
    assert len(processes) >= 4, "the supervisor, the server, its engine and worker"
    killed.kill()
    killed.communicate()
    wait_until_gone(processes)
    first = answers(out)
    assert 3 <= len(first) < ITEMS

    finished = start(smollm2, out)
    _, stderr = finished.communicate(timeout=400)
    assert finished.returncode == 0, stderr
    # vLLM's own words do not reach the terminal.
    assert all(line.startswith(("generate", "score")) for line in stderr.splitlines()), stderr
    ours = answers(out)
    assert {key: ours[key] for key in first} == first
    asked = Counter(json.loads(line)["id"] for line in (out / "calls.jsonl").open())
    assert len(ours) == ITEMS
    assert set(asked.values()) == {1}


@pytest.mark.parametrize(
    ("model", "option", "value", "words"),
    [  # vLLM's words on its arguments, on its configuration, and those of the engine's own process
        ("tiny", "reasoning_parser", "qwen9", "Reasoning parser 'qwen9' not found"),
        ("tiny", "max_model_len", "9999", "max_model_len (9999)"),
        ("smollm2", "kv_cache_gb", "0.1", "KV cache is needed"),
    ],
)
def test_what_vllm_refuses_shows_its_words_and_its_log(
    model: str, option: str, value: str, words: str, request: pytest.FixtureRequest
) -> None:
    before = family(os.getpid())
    with pytest.raises(ConfigError) as caught:
        open_chat(
            f"vllm:{request.getfixturevalue(model)}", ChatOptions(engine_options={option: value})
        )
    message = str(caught.value)
    assert (": vLLM cannot start: " in message, words in message) == (True, True), message
    log = Path(message.partition("; vLLM's log is ")[2].partition(" and ends:")[0])
    assert log.is_file()
    shutil.rmtree(log.parent)
    wait_until_gone([pid for pid in family(os.getpid()) if pid not in before])

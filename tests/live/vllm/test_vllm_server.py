"""vLLM's own server, as its users start it, through `server:`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from vllm_double import family, wait_until_gone
from vllm_runs import evaluate_command

pytestmark = pytest.mark.live

ITEMS = 11


@pytest.fixture
def url(smollm2: Path, tmp_path: Path) -> Iterator[str]:
    """The server's URL, once it answers. It listens on the loopback interface alone."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(smollm2)]
    command += ["--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-model-len", "4096", "--dtype", "float32", "--enforce-eager"]
    private = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    log = tmp_path / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, stdout=stream, stderr=stream, env={**os.environ, **private})
    processes: list[int] = []
    try:
        deadline = time.monotonic() + 200
        while not answers(f"http://127.0.0.1:{port}/health"):
            assert server.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.5)
        processes = family(server.pid)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        wait_until_gone(processes)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


def test_a_server_of_vllm_s_is_evaluated(url: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = evaluate_command(f"server:smollm2@{url}", out, "--limit", ITEMS, "--max-tokens", 24)
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["scored"] == ITEMS
    lines = (out / "calls.jsonl").read_text().splitlines()
    usages = [json.loads(line)["usage"] for line in lines]
    assert all(usage["input_tokens"] > 100 and 0 < usage["output_tokens"] <= 24 for usage in usages)

    wrong = evaluate_command(f"server:no-such-model@{url}", tmp_path / "wrong", "--limit", ITEMS)
    done = subprocess.run(wrong, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "has no model 'no-such-model'" in done.stderr

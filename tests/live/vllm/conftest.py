"""`vllm:` on the real engine: run by the Python of an environment that has vLLM (`make live-vllm`)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.live.vllm_runs import write_tiny

# Other environments collect nothing here; `make live-vllm` fails when nothing is collected. A folder of tests that is
# called vllm is a package without an origin.
_vllm = importlib.util.find_spec("vllm")
collect_ignore_glob = [] if _vllm and _vllm.origin else ["test_*.py"]

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M in float32, as its packaged GGUF describes it."""
    folder = tmp_path_factory.mktemp("checkpoints") / "smollm2"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "export_smollm2.py", folder],
        check=True,
        capture_output=True,
        timeout=200,
    )
    return folder


@pytest.fixture(autouse=True)
def _no_log_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_LOGGING_LEVEL", raising=False)
    assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ, "the default of the KV cache is tested"

"""The first block of each page on a harness, from `pip install` to a score, as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import LoopbackServer
from one_model import Ours, reply

PAGES = Path(__file__).parents[3] / "docs/integrations"
pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
SHOWN = {"inspect": "Overall", "lm-eval": "overall", "evalscope": "weighted_lexical"}


@pytest.mark.parametrize("page", SHOWN)
def test_the_first_block_ends_with_a_score(page: str, ours: dict[str, Ours], tmp_path: Path) -> None:
    """Only what the reader fills in is replaced; the packages are there, so `pip` does nothing."""
    found = re.search(
        r"^```bash\n(.*?)^```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    block = found[1]
    assert block.startswith("pip install")
    assert len(block.splitlines()) <= 10
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/mine").symlink_to(ours["en"].out)
    with LoopbackServer(reply=reply) as server:
        for printed, ours_is in (("http://127.0.0.1:8000/v1", server.url), ("=...", "=none"), ("MODEL", "loopback")):
            block = block.replace(printed, ours_is)
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "none", "NO_COLOR": "1"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"pip() {{ :; }}\n{block}"],
            cwd=tmp_path,
            env={**os.environ, **offline, "PATH": path, "OPENAI_BASE_URL": server.url, "INSPECT_DISPLAY": "plain"},
            capture_output=True,
            text=True,
        )
        assert server.requests >= 176, done.stderr[-2000:]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert SHOWN[page] in done.stdout + done.stderr

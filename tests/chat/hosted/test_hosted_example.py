"""The example of a schema does what its page says, with the price file of another one, against a loopback provider."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from providers import ProviderServer

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_and_the_price_file_of_the_pages_fill_a_form_and_book_the_call(tmp_path: Path) -> None:
    (code,), (prices,) = blocks("how-to/structured-replies.md", "python"), blocks("reference/costs.md", "toml")
    (tmp_path / "own.toml").write_text(prices.replace("gpt-4o-2024-11-20", "gpt-test"))
    code = code.replace("gpt-4o-mini", "gpt-test").replace("load_prices()", 'load_prices(Path("own.toml"))')
    with ProviderServer() as server:
        words, env = [sys.executable, "-c", code], server.environment()
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert re.fullmatch(r"evidence='.*' warmth=[0-5]\n", done.stdout)
    assert '"usd":"0.' in (tmp_path / "calls.jsonl").read_text()

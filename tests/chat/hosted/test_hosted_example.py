"""The example of the hosted tutorial does what the tutorial says, against a loopback provider."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from providers import ProviderServer

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorials" / "hosted.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_example_fills_its_form_and_books_its_call(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'date = "2026-11-20"\ncurrency = "USD"\n[models."openai:gpt-test"]\ninput = "1"\noutput = "2"\n'
    )
    (code,) = blocks("python")
    code = code.replace("gpt-4o-mini", "gpt-test").replace("load_prices()", 'load_prices(Path("own.toml"))')
    with ProviderServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=server.environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stderr == ""
    assert re.fullmatch(r"evidence='.*' warmth=[0-5]\n", done.stdout)
    assert '"usd":"0.' in (tmp_path / "calls.jsonl").read_text()


def test_the_price_file_of_the_tutorial_is_one(tmp_path: Path) -> None:
    from h2htalk.chat.prices import load_prices

    (text,) = blocks("toml")
    path = tmp_path / "my-prices.toml"
    path.write_text(text)
    price = load_prices(path).models.get("openai:gpt-4o-2024-11-20")
    assert price is not None
    assert price.batch is not None

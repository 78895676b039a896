"""The GPU bench goes through on a CPU with toys, says what it did not measure, and counts operations rightly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from bench_gpu import Size, run, text_share

pytestmark = [pytest.mark.local, pytest.mark.slow]
TOY = Size("tiny", "tiny", 64, requests=5, texts=12, prompt_share=0.03, new_tokens=6)


@pytest.fixture(autouse=True, scope="module")
def local_extra() -> None:
    """Imported here, so that whoever leaves these tests out does not wait for them."""
    pytest.importorskip("FlagEmbedding", reason="the local extra is not installed")


def test_tiny_fills_every_table_and_its_greedy_texts_repeat() -> None:
    report = "\n".join(run(TOY))
    assert "| 5 of 5 |" in report
    rows = [line.split("|")[1].strip() for line in report.splitlines() if line.startswith("| ")]
    assert rows.count("h2htalk, bge-m3") == 1
    assert rows.count("FlagEmbedding") >= 2
    assert {"float32", "bfloat16"} <= set(rows)
    assert "NOT MEASURED: models of real size" in report


@pytest.mark.parametrize(
    ("lengths", "batch", "share"),
    [([4, 4, 4, 4], 4, 0.5), ([4, 4, 2, 2], 2, 12 / 20), ([2, 4, 2, 4], 2, 12 / 20), ([8, 1], 2, 9 / 32)],
)
def test_padding_and_the_first_batch_twice_count_as_waste(lengths: list[int], batch: int, share: float) -> None:
    assert text_share(lengths, batch) == pytest.approx(share)

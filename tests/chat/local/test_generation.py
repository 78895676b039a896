"""Drawing tokens, each row with a seed of its own."""

from __future__ import annotations

import pytest

from h2htalk.chat.local.hf import _SeededDraw

pytestmark = pytest.mark.local
torch = pytest.importorskip("torch", reason="hf: needs torch")


@pytest.mark.parametrize(
    ("temperature", "top_p", "shares"),
    [
        (1.0, 1.0, [0.2, 0.5, 0.3, 0]),
        (1.0, 0.7, [0, 0.625, 0.375, 0]),  # the nucleus: tokens 1 and 2, five to three
        (1.0, 0.5, [0, 1, 0, 0]),
        (0.5, 1.0, [4 / 38, 25 / 38, 9 / 38, 0]),  # odds are squared
    ],
)
def test_frequencies_are_those_of_the_distribution(temperature: float, top_p: float, shares: list[float]) -> None:
    draw = _SeededDraw(range(4000), temperature, top_p, "cpu")
    logits = torch.tensor([0.2, 0.5, 0.3, 0.0]).log().expand(4000, 4)
    tokens = draw(None, logits).argmax(-1)
    counts = torch.bincount(tokens, minlength=4) / 4000
    for count, share in zip(counts.tolist(), shares, strict=True):
        assert abs(count - share) <= 4 * (share * (1 - share) / 4000) ** 0.5
    assert draw(None, logits).argmax(-1).tolist() != tokens.tolist() or max(shares) == 1

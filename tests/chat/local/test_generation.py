"""Drawing tokens from given numbers."""

from __future__ import annotations

import pytest

from h2htalk.chat.local.generation import sample_tokens

pytestmark = pytest.mark.local
torch = pytest.importorskip("torch", reason="hf: needs torch")


def draw(probabilities: list[float], number: float, temperature: float = 1.0, top_p: float = 1.0) -> int:
    logits = torch.tensor([probabilities], dtype=torch.float64).log()
    return int(sample_tokens(logits, temperature, top_p, torch.tensor([number], dtype=torch.float64))[0])


@pytest.mark.parametrize(
    ("number", "top_p", "token"),
    [
        (0.0, 1.0, 0),
        (0.19, 1.0, 0),
        (0.21, 1.0, 1),
        (0.69, 1.0, 1),
        (0.71, 1.0, 2),
        (0.999999, 1.0, 2),
        # Nucleus 0.5: token 1 alone; 0.7: tokens 1 and 2, five to three.
        (0.0, 0.5, 1),
        (0.999999, 0.5, 1),
        (0.62, 0.7, 1),
        (0.63, 0.7, 2),
        (0.999999, 0.7, 2),
    ],
)
def test_the_number_picks_the_token(number: float, top_p: float, token: int) -> None:
    assert draw([0.2, 0.5, 0.3], number, top_p=top_p) == token


def test_impossible_tokens_are_never_drawn() -> None:
    for number in (0.0, 0.5, 0.9999999999999999):
        assert draw([0.0, 1.0, 0.0], number) == 1


def test_temperature_sharpens() -> None:
    """At 1/2 the odds of 0.25 to 0.75 become 1 to 9."""
    assert [draw([0.25, 0.75], u, temperature=0.5) for u in (0.09, 0.11)] == [0, 1]


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_frequencies_are_those_of_the_distribution(top_p: float) -> None:
    numbers = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    logits = torch.tensor([0.2, 0.5, 0.3]).log().expand(10_000, 3)
    counts = torch.bincount(sample_tokens(logits, 1.0, top_p, numbers), minlength=3).tolist()
    expected = [2000, 5000, 3000] if top_p == 1 else [0, 6250, 3750]
    assert all(abs(count - right) <= 2 for count, right in zip(counts, expected, strict=True))

"""A part of a value said later is the same part of its surrogate."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from h2htalk.curation.anonymize.engine.analyzer import anonymize_text, find_in_dialogue, operator_configs
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates


def written(surrogates: Surrogates, text: str, spans: Sequence[Span]) -> str:
    return anonymize_text(text, spans, operator_configs(surrogates, {}, b"k" * 32))[0]


def replaced(language: str, *texts: str) -> list[str]:
    data = find_in_dialogue(texts, language)
    made = Surrogates(b"k" * 32, texts, data)
    return [written(made, text, spans) for text, spans in zip(texts, data.spans, strict=True)]


@pytest.mark.parametrize(
    ("language", "first", "later"),
    [
        ("en", "My card is 4111 1111 1111 1111", "use the one ending 1111"),
        ("en", "My card is 4111 1111 1111 1111", "charged to **** 1111"),
        ("zh", "我的卡号是6222021234567890128", "就用尾号0128那张"),
        ("zh", "我的卡号是6222021234567890128", "0128结尾的"),
        ("zh", "打我手机13812345678", "后四位是5678"),
    ],
)
def test_the_tail_was_drawn_for_itself_and_told_another_number(language: str, first: str, later: str) -> None:
    whole, part = replaced(language, first, later)
    tail = re.sub(r"\D", "", whole)[-4:]
    assert re.sub(r"\D", "", part) == tail
    assert tail != re.sub(r"\D", "", later)


def test_tails_of_two_cards_stay_apart() -> None:
    first, second, one, two = replaced(
        "en", "card 4111 1111 1111 1111", "or card 5555 5555 5555 4444", "ending 1111", "ending 4444"
    )
    assert (one[-4:], two[-4:]) == (first[-4:], second[-4:])
    assert one != two

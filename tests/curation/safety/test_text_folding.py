"""Different spellings become one, and places are mapped back to the original text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.safety.text_folding import fold, fold_spelling, original_places, spelling_place
from h2htalk.data.languages import LANGUAGES


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("ＩＤＩＯＴ", "idiot"),
        ("i\u200bd\u00adi\u2060ot", "idiot"),
        ("i\u0301diot", "idiot"),
        ("臺灣獨立", "台湾独立"),
        ("a\x00b\tc", "a b c"),
        ("\ud83d", "\ufffd"),
        ("が한", "が한"),
        ("", ""),
    ],
)
def test_spellings_that_look_the_same_are_equal(written: str, folded: str) -> None:
    assert fold(written) == folded


def test_signs_between_letters_are_removed() -> None:
    assert fold_spelling("I  don’t\nknow…", "en") == "i dont.know..."
    assert fold_spelling("我 不*想 活了\n是", "zh") == "我不想活了.是"


@given(st.text(st.characters(codec=None), max_size=40))
def test_folding_works_character_by_character(text: str) -> None:
    assert fold(text) == "".join(fold(character) for character in text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Cf") for character in fold(text))


@given(st.text(max_size=30), st.sampled_from(["废物", "idiot"]), st.text(max_size=30))
def test_places_are_mapped_back(before: str, word: str, after: str) -> None:
    text = before + word + after
    start = len(fold(before))
    assert original_places(text, [(start, start + len(word))]) == [(len(before), len(before) + len(word))]
    for language in LANGUAGES:
        first, end = spelling_place(text, language, 0, len(fold_spelling(text, language)))
        assert 0 <= first <= end <= len(text)

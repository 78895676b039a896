"""Content words: forms of a word count as one, function words not at all."""

from __future__ import annotations

import pytest

from h2htalk.errors import ConfigError
from h2htalk.text.content_words import content_words


def test_forms_of_an_english_word_are_one() -> None:
    assert content_words("Planting", "en") == content_words("plants", "en") == content_words("planted!", "en")
    assert content_words("baking", "en") == content_words("bake", "en")
    assert content_words("stopped", "en") == content_words("stop", "en")
    assert content_words("I was with you, and it isn't the first.", "en") == frozenset()


def test_chinese_words_are_found_however_the_text_around_is_cut() -> None:
    assert content_words("我在苗圃呢", "zh") == {"苗圃"}
    assert content_words("去苗圃挑乌桕", "zh") & content_words("明天苗圃见", "zh") == {"苗圃"}
    assert content_words("这个是我的", "zh") == frozenset()


def test_a_language_without_a_list_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no language 'fr'"):
        content_words("bonjour", "fr")

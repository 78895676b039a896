"""The table of languages."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.errors import ConfigError
from h2htalk.text.tokens import TOKENIZERS


def test_an_unknown_language_is_an_error_and_never_english() -> None:
    with pytest.raises(ConfigError, match="no language 'fr'; choose from en, zh"):
        find_language("fr")


def test_every_language_names_a_tokenizer() -> None:
    assert {find_language(language).tokenizer for language in LANGUAGES} == set(TOKENIZERS)

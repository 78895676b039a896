"""The one token list that feeds BLEU and ROUGE, by the language a scenario names."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from h2htalk.errors import ConfigError

Tokenizer = Callable[[str], list[str]]


def tokenize(text: str, language: str) -> list[str]:
    """Tokens of a text: `zh` jieba in default mode, `en` sacreBLEU's 13a on the lower-cased text.

    jieba's list is kept as it comes: punctuation and white space are tokens, as in the authors' code.

    Raises:
        ConfigError: a language that is neither `en` nor `zh`; it is never guessed.
    """
    return tokenizer(language)(text)


@cache
def tokenizer(language: str) -> Tokenizer:
    """The tokenizer of a language, its tables loaded."""
    if language == "zh":
        return _jieba()
    if language == "en":
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

        split_13a = Tokenizer13a()
        return lambda text: split_13a(text.lower()).split()
    raise ConfigError(f"no tokenizer for language {language!r}; choose from en, zh")


def tokenizer_signature() -> str:
    """Which tokens a score stands on, for the signature."""
    return f"en=13a.lc-sacrebleu{version('sacrebleu')},zh=jieba{version('jieba')}"


def cache_folder() -> Path:
    """Where this package keeps what it can make again: `H2HTALK_CACHE`, else the user's cache folder."""
    own = os.environ.get("H2HTALK_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "h2htalk"


def _jieba() -> Tokenizer:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    folder = cache_folder()
    try:
        # jieba's own place for its table is the shared temporary folder, which others can write.
        folder.mkdir(parents=True, exist_ok=True)
        jieba.dt.tmp_dir = str(folder)
    except OSError:
        pass  # without a cache folder jieba reads its dictionary, one second a start
    jieba.initialize()
    cut: Tokenizer = jieba.lcut
    return cut

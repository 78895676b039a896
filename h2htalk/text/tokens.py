"""Tokenize a text by the language its scenario names; one token list feeds BLEU and ROUGE."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from h2htalk.data.languages import RECORDS, find_language


def cache_folder() -> Path:
    """Return `H2HTALK_CACHE` (a leading `~` is the home folder), else `h2htalk/` in the user's cache folder (XDG).

    Raises RuntimeError where the user has no home folder.
    """
    named = os.environ.get("H2HTALK_CACHE")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "h2htalk"


Tokenizer = Callable[[str], list[str]]
Tokenize = Callable[[str, str], list[str]]  # (text, language), as `tokenize`
# A longer run of Han characters (as jieba counts them) is cut into pieces of this length.
HAN_RUN = 2000
_LONG_RUN = re.compile(f"[\u4e00-\u9fd5]{{{HAN_RUN + 1},}}")


def tokenize(text: str, language: str) -> list[str]:
    """Tokenize a text: `zh` by jieba in default mode, `en` by sacreBLEU's 13a on the lower-cased text.

    jieba's list is unchanged: punctuation and white space are tokens, as in the authors' code. Only a run
    of more than 2,000 Han characters without anything between them, which no person writes, is cut after every
    2,000 before jieba reads it: jieba's time grows with the square of such a run (200,000 characters: a minute).
    Raises ConfigError for an unknown language.
    """
    return tokenizer(language)(text)


@cache
def tokenizer(language: str) -> Tokenizer:
    """Return the tokenizer of a language, its tables loaded."""
    return TOKENIZERS[find_language(language).tokenizer]()


def english_tokenizer() -> Tokenizer:
    """sacreBLEU's 13a on the lower-cased text."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    split_13a = Tokenizer13a()
    return lambda text: split_13a(text.lower()).split()


def chinese_tokenizer() -> Tokenizer:
    """jieba in default mode, which reads longer runs of Han characters than HAN_RUN in pieces."""
    cut: Tokenizer = chinese_words().lcut

    def cut_in_pieces(text: str) -> list[str]:
        if len(text) <= HAN_RUN:
            return cut(text)
        borders = [0]
        for run in _LONG_RUN.finditer(text):
            borders += range(run.start() + HAN_RUN, run.end(), HAN_RUN)
        borders.append(len(text))
        tokens = []
        for start, end in pairwise(borders):
            tokens += cut(text[start:end])
        return tokens

    return cut_in_pieces


TOKENIZERS = {"13a": english_tokenizer, "jieba": chinese_tokenizer}


def tokenizer_signature() -> str:
    """Name the tokenizers and their versions, for the signature."""
    versions = {
        "13a": f"13a.lc-sacrebleu{version('sacrebleu')}",
        "jieba": f"jieba{version('jieba')}.run{HAN_RUN}",
    }
    return ",".join(
        f"{language}={versions[record.tokenizer]}" for language, record in RECORDS.items()
    )


@cache
def chinese_words() -> Any:
    """Return a `jieba.Tokenizer` of our own, its dictionary loaded: 60 MB until `release_tokenizers`."""
    import jieba

    # Above ERROR: jieba logs a traceback when its table cannot be stored, and continues without.
    jieba.setLogLevel(logging.CRITICAL)
    # jieba stores its table in the shared temporary folder, where another user could plant one.
    with contextlib.ExitStack() as stack:
        try:
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
        # No cache folder, or no home: the dictionary is read at each start.
        except (OSError, RuntimeError):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="h2htalk-")))
        words = jieba.Tokenizer()
        words.tmp_dir = str(folder)
        words.initialize()
    return words


def release_tokenizers() -> None:
    """Free the memory of the tokenizers after a run's texts are counted; the next use loads them again."""
    tokenizer.cache_clear()
    chinese_words.cache_clear()

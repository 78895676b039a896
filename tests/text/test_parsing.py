"""The bundled pipelines and spaCy's own. Figures on the test sets: tools/train_pipelines.py --check."""

import time
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.errors import ConfigError
from h2htalk.text.parsing import LONGEST_PIECE, MODELS, load_names, load_parser, parse, pieces

BUNDLED = ("en_parser", "en_names", "zh_segmenter", "zh_parser", "zh_names")


@pytest.mark.parametrize("name", BUNDLED)
def test_a_model_is_small_and_says_whose_work_it_stands_on(name: str) -> None:
    folder = MODELS / name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size < 8_000_000
    assert "Attribution-ShareAlike 4.0" in (folder / "LICENSE.md").read_text(encoding="utf-8")
    assert "CC BY-SA" in (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["en_parser", "en_names", "zh_parser", "zh_names"])
def test_a_model_holds_no_words_of_its_training_texts(name: str) -> None:
    """Names and handles of the tweets and forums it learned from stay out of the package."""
    stored = (MODELS / name / "vocab/strings.json").read_text(encoding="utf-8")
    assert len(stored) < 120_000
    for word in ("Baghdad", "Enron", "rreynol", "@ann", "北京", "中国"):
        assert word not in stored


def test_an_english_sentence_is_tagged_and_parsed() -> None:
    (doc,) = parse(["I washed the dishes after dinner."], "en")
    assert [token.pos_ for token in doc] == ["PRON", "VERB", "DET", "NOUN", "ADP", "NOUN", "PUNCT"]
    dishes = doc[3]
    assert (dishes.dep_, dishes.head.text) == ("obj", "washed")


def test_a_chinese_sentence_is_cut_tagged_and_parsed() -> None:
    (doc,) = parse(["我喝了一杯咖啡。"], "zh")
    assert [token.text for token in doc] == ["我", "喝", "了", "一", "杯", "咖啡", "。"]
    assert (doc[5].dep_, doc[5].head.text) == ("obj", "喝")


def test_chinese_sentences_end_at_full_stops() -> None:
    (doc,) = parse(["我喝了咖啡。你呢？走吧！"], "zh")
    assert [sentence.text for sentence in doc.sents] == ["我喝了咖啡。", "你呢？", "走吧！"]


@pytest.mark.parametrize(
    ("language", "text", "names"),
    [
        ("en", "Yesterday Sarah flew to London.", {("Sarah", "PERSON"), ("London", "LOC")}),
        ("zh", "王小明昨天去了北京。", {("王小明", "PERSON"), ("北京", "LOC")}),
    ],
)
def test_names_are_found(language: str, text: str, names: set[tuple[str, str]]) -> None:
    assert {(entity.text, entity.label_) for entity in load_names(language)(text).ents} == names


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "😂😂",
        "\u200b",
        "好 good 好",
        "a" + "!" * 1900 + "b",
        "?." * 900 + "x",
        "a" * 5000,
        "哈" * 5000,
        "\n",
    ],
)
def test_any_text_is_read_and_kept(language: str, text: str) -> None:
    (doc,) = parse([text], language)
    assert doc.text == text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_texts_keep_their_order_and_do_not_touch_each_other(language: str) -> None:
    texts = ["I fed the cat.", "我喝了咖啡。", "", "Feeding cats"] * 40
    together = [[(t.text, t.dep_, t.head.i) for t in doc] for doc in parse(texts, language)]
    alone = [
        [(t.text, t.dep_, t.head.i) for t in doc] for text in texts[:4] for doc in parse([text], language)
    ]
    assert together == alone * 40


@pytest.mark.parametrize("language", ["en", "zh"])
def test_loading_takes_less_than_a_second(language: str) -> None:
    load_parser("en" if language == "zh" else "zh")  # what both share is imported
    from h2htalk.text import parsing

    parsing._load.cache_clear()
    start = time.process_time()
    load_parser(language)
    assert time.process_time() - start < 1


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(ConfigError, match="no parser for language 'fr'; choose from en, zh"):
        load_parser("fr")


def test_a_model_that_is_not_there_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"'en_core_web_none' cannot be loaded .*python -m spacy download"):
        load_parser("en", "en_core_web_none")


@pytest.mark.parametrize("package", ["numpy", "jieba", "spacy"])
def test_a_package_that_is_no_model_is_refused(package: str) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_parser("en", package)


def test_a_model_of_another_language_is_refused() -> None:
    with pytest.raises(ConfigError, match="is for language 'en', not 'zh'"):
        load_parser("zh", str(MODELS / "en_parser"))


def test_a_model_without_a_parser_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "bare")
    with pytest.raises(ConfigError, match="has no parser: it is empty"):
        load_parser("en", str(tmp_path / "bare"))


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("hello")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_parser("en", str(tmp_path))


@given(st.text(alphabet="ab 。，.,\n!?好", max_size=9000))
def test_pieces_are_short_and_lose_nothing_but_white_space(text: str) -> None:
    parts = list(pieces(text))
    assert all(0 < len(part) <= LONGEST_PIECE for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_long_line_is_cut_after_a_sentence() -> None:
    text = "I fed the cat. " * 500
    assert all(part.endswith("cat.") for part in pieces(text))

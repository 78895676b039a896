"""Personal data found and replaced by Presidio, in a text and wherever a dialogue repeats it; no network."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tables import table

from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue
from h2htalk.curation.anonymize.values.dialogue_values import (
    addressed_personas,
    companion_names,
    find_allowed,
    longer_names,
)

if find_spec("presidio_analyzer") is None:
    pytest.skip("the curation extra is not installed", allow_module_level=True)

from h2htalk.curation.anonymize.engine.analyzer import (
    MARGIN,
    WINDOW,
    chat_analyzer,
    find_spans,
    replace_values,
)
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates

KEY = b"k" * 32


@pytest.fixture(autouse=True, scope="module")
def _no_network() -> Iterator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a recogniser called out")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", refuse)
        patch.setattr(socket.socket, "connect", refuse)
        yield


def test_presidios_analyzer_finds_what_the_stage_finds() -> None:
    text = "我叫张伟，邮箱是lin88@qq.com吧，电话13812345678，QQ 12345678，住在和平里小区6栋176"
    results = chat_analyzer("zh").analyze(text, language="zh")
    assert sorted((r.start, r.end, r.entity_type, r.score) for r in results) == [
        (s.start, s.end, s.type, s.score) for s in find_in_dialogue([text], "zh").spans[0]
    ]
    assert {r.entity_type for r in results} == {"PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "QQ", "ADDRESS"}


def _anonymized(text: str, **operators: str) -> str:
    data = find_in_dialogue([text], "en")
    return replace_values([text], data.spans, Surrogates(KEY, [text], data), operators, KEY)[0][0]


def test_operators_replace_by_type() -> None:
    text = "my friends Tom Baker and Ann Miller, mail tom@baker.com"
    made = _anonymized(text, PERSON="mask", EMAIL_ADDRESS="redact")
    assert made == "my friends ********* and **********, mail "
    hashed = _anonymized(text, EMAIL_ADDRESS="hash")
    assert hashed == _anonymized(text, EMAIL_ADDRESS="hash")
    assert len(hashed.rsplit(" ", 1)[1]) == 64
    surrogates = _anonymized(text)
    assert "Baker" not in surrogates
    assert surrogates.startswith("my friends ")


@pytest.mark.parametrize("operator", ["surrogate", "mask", "hash", "redact"])
def test_half_surrogates_inside_a_value_break_no_operator(operator: str) -> None:
    text = "call \ud800 me: 415-555-\u200b2671 \udfff, my name is Tom\ud83d Baker"
    assert "2671" not in _anonymized(text, DEFAULT=operator)


def test_a_worker_imports_neither_torch_nor_transformers_and_stays_small() -> None:
    code = """
import re, sys
from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue
find_in_dialogue(["my name is Tom Baker, I work at Mercy Hospital", "Tom lives at 12 Oak Street"] * 20, "en")
find_in_dialogue(["我叫张伟，电话13812345678，住在和平里小区6栋176"] * 20, "zh")
print([name for name in ("torch", "transformers", "gliner") if name in sys.modules])
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    imported, megabytes = done.stdout.split("\n")[:2]
    assert imported == "[]"
    assert int(megabytes) <= 410  # 402 with the oldest versions of what it needs


@pytest.mark.parametrize(("language", "text", "countries", "number"), table("curation", "phone_numbers_of_other_lands"))
def test_phone_numbers_of_other_lands(language: str, text: str, countries: list[str], number: str | None) -> None:
    (spans,) = find_in_dialogue([text], language, countries=tuple(countries)).spans
    phones = [text[span.start : span.end] for span in spans if span.type == "PHONE_NUMBER"]
    assert phones == ([number] if number else [])


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, WINDOW - MARGIN - 5, WINDOW - 8, 2 * WINDOW - 3 * MARGIN + 4, 3 * WINDOW])
def test_a_value_is_found_wherever_a_long_text_is_cut(place: int) -> None:
    filler = "今天天气不错，" * (5 * WINDOW // 7)
    text = filler[:place] + "我叫张伟，电话13812345678。" + filler[place:]
    assert [(s.start - place, text[s.start : s.end]) for s in find_spans(text, "zh")] == [
        (2, "张伟"),
        (7, "13812345678"),
    ]


def marked(language: str, *texts: str, allow: tuple[str, ...] = ()) -> list[list[str]]:
    data = find_in_dialogue(texts, language, allow=allow)
    return [[text[s.start : s.end] for s in spans] for text, spans in zip(texts, data.spans, strict=True)]


# What was said of Emily or Harry, and what is marked in each text; the second half survived once.
@pytest.mark.parametrize(("language", "texts", "expected"), table("curation", "repeated_values"))
def test_a_value_is_marked_wherever_it_is(language: str, texts: tuple[str, ...], expected: list[list[str]]) -> None:
    assert marked(language, *texts) == expected


def test_companions_and_leaks_in_a_dialogue() -> None:
    said = marked("en", "my cousin Nora Smith called", "Nora: how are you?", allow=("Nora Vale", "Nora"))
    assert said == [["Nora Smith"], []]
    # The leak check was blind to disguised values; names that stay are no leak.
    data = find_in_dialogue(["my friend Harry Kowalczyk, 415-555-2671"], "en")
    assert data.leaks(["ＫＯＷＡＬＣＺＹＫ"])
    assert data.leaks(["4 1 5 5 5 5 2 6 7 1"])
    assert data.leaks(["harry\u200b-kowal\u00adczyk"])
    assert not data.leaks(["I read Harry Potter 415 times"])
    # Bundled personas are spoken to where they are named in full.
    assert addressed_personas(["I am NORA VALE."]) == ["Nora Vale"]
    assert addressed_personas(["I am Nora."]) == []
    # A Chinese companion's name was kept inside longer names.
    said = "小雨你好，我叫小雨婷，我妈叫陈小雨。小雨明天见"
    assert stays(said, "zh", "小雨") == [("小雨", "companion"), ("小雨", "companion")]
    assert [said[s.start : s.end] for s in longer_names(said, ["小雨"])] == ["小雨婷", "陈小雨"]
    # The first word alone names a companion only.
    assert companion_names(["Nora Vale", "艾薇"]) == ["Nora Vale", "Nora", "艾薇"]
    assert stays("Hi John", "en", "John Lewis") == []
    # A child introduced by a word is replaced everywhere.
    texts = ["我儿子叫豆豆，今年三岁，最近总是哭闹。", "豆豆哭闹的时候你怎么做？", "我抱着豆豆走来走去。"]
    found = find_in_dialogue(texts, "zh").spans
    assert [[text[s.start : s.end] for s in own] for text, own in zip(texts, found, strict=True)] == [["豆豆"]] * 3


def stays(text: str, language: str, *names: str) -> list[tuple[str, str]]:
    return [(text[a.start : a.end], a.type) for a in find_allowed(text, language, names)]


@pytest.mark.parametrize(("language", "text", "names", "expected"), table("curation", "names_that_stay"))
def test_what_stays(language: str, text: str, names: list[str], expected: list[list[str]]) -> None:
    assert [[*one] for one in stays(text, language, *names)] == expected

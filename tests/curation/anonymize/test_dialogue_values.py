"""Within a dialogue: what is found once is marked wherever it is said, and what stays."""

from __future__ import annotations

import pytest

from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue
from h2htalk.curation.anonymize.values.dialogue_values import (
    addressed_personas,
    companion_names,
    find_allowed,
    longer_names,
)


def marked(language: str, *texts: str, allow: tuple[str, ...] = ()) -> list[list[str]]:
    data = find_in_dialogue(texts, language, allow=allow)
    return [[text[s.start : s.end] for s in spans] for text, spans in zip(texts, data.spans, strict=True)]


# What was said of Emily or Harry, and what is marked in each text; the second half survived once.
@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [
        ("en", ("so EMILY left", "my name is Emily Carter", "ask emily"), [["EMILY"], ["Emily Carter"], ["emily"]]),
        ("en", ("my friend Talia Brook", "a babbling brook", "then Brook cried"), [["Talia Brook"], [], ["Brook"]]),
        ("en", ("I am Anna", "savannah and annals"), [["Anna"], []]),
        ("zh", ("我叫李思琪", "思琪别哭", "叫李思琪就好"), [["李思琪"], ["思琪"], ["李思琪"]]),
        ("zh", ("我朋友叫张明天", "明天再说吧"), [["张明天"], []]),
        ("zh", ("我妈妈叫文静", "一个文静的人"), [["文静"], []]),
        # A name that is a word is meant with its capital inside a sentence.
        ("en", ("my friend Grace Miller", "then Grace left", "I saw GRACE"), [["Grace Miller"], ["Grace"], ["GRACE"]]),
        ("en", ("my friend Grace Miller", "I say grace"), [["Grace Miller"], []]),
        ("en", ("so tom hit me", "and tom?", "Tom, tom and tom's mum"), [["tom"], ["tom"], ["Tom", "tom", "tom"]]),
        ("en", ("my sister bo is here", "bo and bob left"), [["sister bo"], ["bo", "bob"]]),
        ("en", ("my friend Harry called", "I read Harry Potter", "Harry again"), [["Harry"], [], ["Harry"]]),
        # A figure's name stayed in other messages though a private person bears it.
        ("en", ("my name is Harry Styles", "Hi Harry Styles!"), [["Harry Styles"], ["Harry Styles"]]),
        ("en", ("my name is Harry Styles", "Harry, Taylor Swift is fine"), [["Harry Styles"], ["Harry"]]),
        # A name that ends a message behind an unseen character broke off with an index error.
        *(
            ("en", ("I'm dating Emily Kowalczyk.", f"so {unseen} thanks Emily"), [["Emily Kowalczyk"], ["Emily"]])
            for unseen in ("\u2764\ufe0f", "\u00ad", "\u200b")
        ),
        # In another format.
        ("en", ("My SSN is 536-22-8741.", "Is 536228741 right?"), [["536-22-8741"], ["536228741"]]),
        ("zh", ("我QQ是987654321", "9 8 7 6 5 4 3 2 1？"), [["987654321"], ["9 8 7 6 5 4 3 2 1"]]),
        ("zh", ("我QQ是987654321", "九八七六五四三二一"), [["987654321"], ["九八七六五四三二一"]]),
        *(
            ("en", ("I'm dating Emily Kowalczyk.", f"{again} left"), [["Emily Kowalczyk"], [again]])
            for again in ("KOWALCZYK", "kowalczyk", "Kowalczyk", "EmilyKowalczyk", "@emilykowalczyk", "emily.kowalczyk")
        ),
        ("en", ("I'm dating Emily Kowalczyk.", "the Kowalczyks"), [["Emily Kowalczyk"], ["Kowalczyk"]]),
        (
            "en",
            ("I live at 22 Wexcombe Road, Bristol BS6 5AB", "Wexcombe Rd? bs65ab"),
            [["22 Wexcombe Road, Bristol BS6 5AB"], ["Wexcombe Rd", "bs65ab"]],
        ),
    ],
)
def test_a_value_is_marked_wherever_it_is_said(
    language: str, texts: tuple[str, ...], expected: list[list[str]]
) -> None:
    assert marked(language, *texts) == expected


def test_the_companions_name_stays_where_a_person_shares_it() -> None:
    said = marked("en", "my cousin Nora Smith called", "Nora: how are you?", allow=("Nora Vale", "Nora"))
    assert said == [["Nora Smith"], []]


def test_the_leak_check_was_blind_to_other_dresses_and_is_not_to_names_that_stay() -> None:
    data = find_in_dialogue(["my friend Harry Kowalczyk, 415-555-2671"], "en")
    assert data.leaks(["ＫＯＷＡＬＣＺＹＫ"])
    assert data.leaks(["4 1 5 5 5 5 2 6 7 1"])
    assert data.leaks(["harry\u200b-kowal\u00adczyk"])
    assert not data.leaks(["I read Harry Potter 415 times"])


def stays(text: str, language: str, *names: str) -> list[tuple[str, str]]:
    return [(text[a.start : a.end], a.type) for a in find_allowed(text, language, names)]


@pytest.mark.parametrize(
    ("language", "text", "names", "expected"),
    [
        ("en", "Nora Vale, are you there, nora?", (), [("Nora Vale", "companion")]),
        ("en", "Talia, hi! talia!", ("Talia Brook", "Talia"), [("Talia", "companion"), ("talia", "companion")]),
        ("en", "my boss Talia Smith called. Talia I miss you", ("Talia",), [("Talia", "companion")]),
        ("en", "Like Hermione or Frodo", (), [("Hermione", "figure"), ("Frodo", "figure")]),
        ("en", "Hermiones", (), []),
        ("en", "my name is Hermione", (), []),
        ("zh", "苏晚你好，读了《张伟的信》", (), [("苏晚", "companion"), ("《张伟的信》", "title")]),
        ("zh", "喜欢林黛玉", (), [("林黛玉", "figure")]),
        ("zh", "我叫孙悟空", (), []),
    ],
)
def test_what_stays(language: str, text: str, names: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert stays(text, language, *names) == expected


def test_bundled_personas_are_spoken_to_where_they_are_named_in_full() -> None:
    assert addressed_personas(["I am NORA VALE."]) == ["Nora Vale"]
    assert addressed_personas(["I am Nora."]) == []


def test_a_chinese_companions_name_was_kept_inside_longer_names() -> None:
    said = "小雨你好，我叫小雨婷，我妈叫陈小雨。小雨明天见"
    assert stays(said, "zh", "小雨") == [("小雨", "companion"), ("小雨", "companion")]
    assert [said[s.start : s.end] for s in longer_names(said, ["小雨"])] == ["小雨婷", "陈小雨"]


def test_the_first_word_alone_is_a_companions_only() -> None:
    assert companion_names(["Nora Vale", "艾薇"]) == ["Nora Vale", "Nora", "艾薇"]
    assert stays("Hi John", "en", "John Lewis") == []


def test_a_child_introduced_by_a_word_is_replaced_everywhere() -> None:
    texts = ["我儿子叫豆豆，今年三岁，最近总是哭闹。", "豆豆哭闹的时候你怎么做？", "我抱着豆豆走来走去。"]
    found = find_in_dialogue(texts, "zh").spans
    assert [[text[s.start : s.end] for s in own] for text, own in zip(texts, found, strict=True)] == [["豆豆"]] * 3

"""What stays: companions, figures, titles."""

from __future__ import annotations

import pytest

from h2htalk.curation.anonymize.allow_list import (
    addressed_personas,
    companion_names,
    find_allowed,
    longer_names,
)


def stays(text: str, language: str, *names: str) -> list[tuple[str, str]]:
    return [(text[a.start : a.end], a.type) for a in find_allowed(text, language, names)]


@pytest.mark.parametrize(
    ("language", "text", "names", "expected"),
    [
        ("en", "Nora Vale, are you there, nora?", (), [("Nora Vale", "companion")]),
        (
            "en",
            "Talia, are you there? talia!",
            ("Talia Brook", "Talia"),
            [("Talia", "companion"), ("talia", "companion")],
        ),
        ("en", "my boss Talia Smith called. Talia I miss you", ("Talia",), [("Talia", "companion")]),
        ("en", "Like Hermione or Frodo", (), [("Hermione", "figure"), ("Frodo", "figure")]),
        ("en", "Hermiones", (), []),
        ("en", "my name is Hermione", (), []),
        (
            "zh",
            "苏晚你好，读了《张伟的信》，喜欢林黛玉",
            (),
            [("苏晚", "companion"), ("《张伟的信》", "title"), ("林黛玉", "figure")],
        ),
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

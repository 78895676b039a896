"""What stays: companions, figures, titles."""

from __future__ import annotations

import pytest

from h2htalk.curation.anonymize.allow_list import (
    NameIndex,
    addressed_personas,
    companion_names,
    find_allowed,
    private_namesakes,
)


def stays(text: str, language: str, *names: str) -> list[tuple[str, str]]:
    return [(text[a.start : a.end], a.kind) for a in find_allowed(text, language, names)]


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


def test_the_longest_name_counts_and_latin_ones_stand_alone() -> None:
    index = NameIndex(["Ann", "Ann Lee", "张", "张三丰"])
    assert index.find("ann lee, annie, 张三丰") == [(0, 7), (16, 19)]
    assert index.find("我ann好") == [(1, 4)]


def test_bundled_personas_are_spoken_to_where_they_are_named_in_full() -> None:
    assert addressed_personas(["I am NORA VALE."]) == ["Nora Vale"]
    assert addressed_personas(["I am Nora."]) == []


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("en", "My ex Harry Styles stalks me.", "Harry Styles"),
        ("en", "I'm Harry Styles, 34", "Harry Styles"),
        ("zh", "我同桌舒婷骂我", "舒婷"),
    ],
)
def test_a_private_person_with_a_figures_name_was_kept_unless_my_name_is_stood_before_it(
    language: str, text: str, name: str
) -> None:
    assert stays(text, language) == []
    assert [text[s.start : s.end] for s in private_namesakes(text, language)] == [name]


def test_a_figure_somebody_is_fond_of_stays() -> None:
    assert private_namesakes("I'm Harry Styles obsessed, my idol Harry Styles", "en") == []


def test_a_chinese_companions_name_was_kept_inside_longer_names() -> None:
    said = "小雨你好，我叫小雨婷，我妈叫陈小雨。小雨明天见"
    assert stays(said, "zh", "小雨") == [("小雨", "companion"), ("小雨", "companion")]
    assert [said[s.start : s.end] for s in private_namesakes(said, "zh", ["小雨"])] == ["小雨婷", "陈小雨"]


def test_the_first_word_alone_is_a_companions_only() -> None:
    assert companion_names(["Nora Vale", "艾薇"]) == ["Nora Vale", "Nora", "艾薇"]
    assert stays("Hi John", "en", "John Lewis") == []

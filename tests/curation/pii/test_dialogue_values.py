"""Within a dialogue: what is found once is marked wherever it is said."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.pii.dialogue_values import find_in_dialogue


def marked(language: str, *texts: str, allow: tuple[str, ...] = ()) -> list[list[str]]:
    data = find_in_dialogue(texts, language, allow=allow)
    return [[text[s.start : s.end] for s in spans] for text, spans in zip(texts, data.spans, strict=True)]


@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [
        (
            "en",
            ("so EMILY left", "my name is Emily Carter", "ask emily"),
            [["EMILY"], ["Emily Carter"], ["emily"]],
        ),
        (
            "en",
            ("my friend Talia Brook", "a babbling brook", "then Brook cried"),
            [["Talia Brook"], [], ["Brook"]],
        ),
        ("en", ("I am Anna", "savannah and annals"), [["Anna"], []]),
        ("zh", ("我叫李思琪", "思琪别哭", "叫李思琪就好"), [["李思琪"], ["思琪"], ["李思琪"]]),
        ("zh", ("我朋友叫张明天", "明天再说吧"), [["张明天"], []]),
        ("zh", ("我的QQ是29384756", "就是29384756这个"), [["29384756"], ["29384756"]]),
    ],
)
def test_a_name_is_marked_before_and_after(
    language: str, texts: tuple[str, ...], expected: list[list[str]]
) -> None:
    assert marked(language, *texts) == expected


def test_a_name_that_is_a_word_is_meant_with_its_capital_inside_a_sentence() -> None:
    said = marked("en", "my friend Grace Miller", "say grace. Grace under pressure", "then Grace left")
    assert said[0] == ["Grace Miller"]
    assert "grace" not in said[1]
    assert said[2] == ["Grace"]


def test_the_companions_name_and_figures_stay_where_a_person_shares_them() -> None:
    said = marked("en", "my cousin Nora Smith called", "Nora: how are you?", allow=("Nora Vale",))
    assert said == [["Nora Smith"], []]
    said = marked("en", "my friend Harry called", "I read Harry Potter", "Harry again")
    assert said == [["Harry"], [], ["Harry"]]


def test_many_values_in_a_long_dialogue_take_time_in_proportion() -> None:
    def seconds(n: int) -> float:
        texts = [" ".join(f"call 415-{200 + i % 700}-{i:04}." for i in range(n))]
        start = time.process_time()
        find_in_dialogue(texts, "en")
        return time.process_time() - start

    seconds(10)
    short, long = seconds(1000), seconds(4000)
    assert long < 4 * 2.5 * short + 0.2

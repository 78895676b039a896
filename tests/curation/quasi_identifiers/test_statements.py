"""What users say about age, place, job, school and dates."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.quasi_identifiers.report import KINDS, find_statements
from h2htalk.data.scenario import Dialogue, Turn


def stated(text: str, language: str = "en", role: str = "user") -> dict[str, str]:
    """The statements of one message, as kind: value."""
    turn = Turn("user" if role == "user" else "companion", text)
    return dict(list(find_statements(Dialogue("d", language, (turn,)), {})))


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "I'm 34, I work as a harbour pilot.", {"age": "34", "job": "harbour pilot"}),
        ("en", "My 12-year-old son is in 7th grade.", {"age": "12", "school": "7th grade"}),
        ("en", "im a good nurse and i live in leeds", {"job": "nurse", "place": "leeds"}),
        ("en", "We moved to Haugesund and my wife is a teacher", {"place": "haugesund", "job": "teacher"}),
        ("en", "She died on 3 May, I'm majoring in physics", {"date": "05-03", "school": "physics"}),
        ("en", "It began in March 2021.", {"date": "2021-03"}),
        ("zh", "我今年三十四岁，是一名护士。", {"age": "34", "job": "护士"}),
        ("zh", "我是一名乡村教师，老家在泰安市", {"job": "乡村教师", "place": "泰安"}),
        ("zh", "我女儿17岁，高二，5月3日搬家。", {"age": "17", "school": "高二", "date": "05-03"}),
        ("zh", "本人95后，我学的是会计，2019年5月一直忙", {"age": "95后", "school": "会计", "date": "2019-05"}),
    ],
)
def test_statements_are_found_and_normalised(language: str, text: str, found: dict[str, str]) -> None:
    assert stated(text, language) == found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I have worked there for 34 years and I'm 100% sure."),
        ("en", "When I was 12 years old we had a 20 year old car."),
        ("en", "I want to be a nurse. I may go at 3. You are a teacher?"),
        ("en", "I am from a small town and in a bad place."),
        ("zh", "我5岁的时候，我男朋友大我20岁。"),
        ("zh", "我想做老师。我不想在酒店做服务员。我是老师眼里的好学生。"),
        ("zh", "这是最大一次打击，我高三的时候想去北京。"),
    ],
)
def test_what_is_no_statement_stays_out(language: str, text: str) -> None:
    assert stated(text, language) == {}


def test_only_the_users_messages_count() -> None:
    assert stated("I'm 34 and I live in Leeds.", role="companion") == {}


@pytest.mark.parametrize(
    "piece", ["my ", "I am a ", "in a a ", "1", "May ", "我在", "我现在", "一岁十", "moved to A", "at A "]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    stated(piece, "zh"), stated(piece)  # compiled once
    start = time.process_time()
    for language in ("en", "zh"):
        stated(piece * (30_000 // len(piece)), language)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_the_anonymiser_put_in_is_left_out(language: str) -> None:
    text = {"en": "I live in Leeds and I'm 34.", "zh": "我住在泰安，我34岁。"}[language]
    start = text.index({"en": "Leeds", "zh": "泰安"}[language])
    dialogue = Dialogue("d", language, (Turn("user", text),))
    assert find_statements(dialogue, {1: [(start, start + 2)]}) == {("age", "34"): [1]}
    assert {kind for kind, _ in find_statements(dialogue, {2: [(start, start + 2)]})} == {"age", "place"} <= set(KINDS)

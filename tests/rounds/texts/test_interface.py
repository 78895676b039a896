"""Texts of the interface and guidelines: complete, plain, the same in both languages, without internal names."""

from __future__ import annotations

import itertools
import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, RoundError
from h2htalk.rounds.questions import (
    KINDS,
    QUESTIONS,
    READING_KINDS,
    READING_QUESTIONS,
    VIOLATIONS,
    Kind,
    Question,
    questions_for,
)
from h2htalk.rounds.settings import Adaptive, Care, RoundSpec, Sample
from h2htalk.rounds.texts import interface
from h2htalk.text.help_lines import help_rows

TIES = questions_for("adjudication", [["dialogue_base", "none"], ["keep", "drop"], ["yes", "no"]])
EVERY = {
    q.name: q
    for questions in (*QUESTIONS.values(), READING_QUESTIONS.values(), TIES)
    for q in questions
}
HAN = re.compile(r"[\u4e00-\u9fff]")


def stored(language: Language) -> dict[str, Any]:
    path = files("h2htalk.rounds") / "texts" / f"interface_{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def leaves(
    table: Mapping[str, Any], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_texts_are_in_their_language_with_the_same_keys_and_fields_without_internal_names() -> None:
    english, chinese = (dict(leaves(stored(language))) for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    assert {key for key in english if fields(english[key]) != fields(chinese[key])} == set()
    ours = r"[A-Za-z]+_[A-Za-z]+|[Ss]ubtask|[Bb]enchmark|itinerary|recollection"
    for key, text in (*english.items(), *chinese.items()):
        assert text.strip() == text != "", key
        assert re.findall(ours, re.sub(r"\{\w+\}", "", text)) == [], key
    assert not [key for key, text in english.items() if HAN.search(text)]
    assert [key for key, text in chinese.items() if HAN.search(text)] == list(chinese)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_question_has_its_texts_with_distinct_choices_and_no_others(
    language: Language,
) -> None:
    questions = stored(language)["questions"]
    assert questions.keys() == EVERY.keys()
    for name, question in EVERY.items():
        assert list(map(int, questions[name].get("ratings", {}))) == list(question.ratings)
        if name != "label":
            assert tuple(questions[name].get("labels", {})) == question.labels
        shown = [interface.label_text(name, label, language) for label in question.labels]
        shown += [
            interface.rating_text(name, rating, language)[2:].strip() for rating in question.ratings
        ]
        assert len({one.casefold() for one in shown}) == len(shown), name
    helps = [interface.label_help("subtask", label, language) for label in (*SUBTASKS, "none")]
    assert all(helps)
    assert len(set(helps)) == len(helps)
    names = sorted({name for subtask in SUBTASKS.values() for name, _ in subtask.inputs})
    titles = {interface.passage_title(name, language) for name in names}
    assert len(titles - set(names)) == len(names)
    assert interface.passage_title("Weather report", language) == "Weather report"


TIED = questions_for("adjudication", [["keep", "drop"], ["dialogue_base", "dialogue_emotion"]])
ROUNDS: tuple[tuple[Kind, tuple[Question, ...]], ...] = (
    *((kind, QUESTIONS[kind]) for kind in KINDS),
    *((kind, questions_for(kind, [], READING_QUESTIONS)) for kind in READING_KINDS),
    ("adjudication", TIED),
)
CASES = [(kind, questions, language) for kind, questions in ROUNDS for language in LANGUAGES]
IDS = [
    f"{kind}-{questions[0].name}-{len(questions)}-{language}" for kind, questions, language in CASES
]
CONSENT = {"en": "## Before you begin", "zh": "## 开始之前"}
CARE = {"en": "## Take care of yourself", "zh": "## 照顾好自己"}
REQUIRED = {
    "en": (
        "You may skip any item. It costs you nothing", "announced before the text", "Take a break",
        "salted hash", "do not copy", "do not talk about the items",
    ),
    "zh": (
        "任何一条都可以跳过。跳过没有任何影响", "正文之前会先提醒", "歇一歇", "加盐哈希", "不要复制", "不要和别人讨论",
    ),
}  # fmt: skip
# Names that are ordinary words.
PLAIN_WORDS = {"manipulation", "other", "sexual", "demeaning", "boundary", "privacy"}


def written(kind: Kind = "crowd", language: Language = "en", **settings: Any) -> str:
    return interface.guidelines(
        RoundSpec(kind, "items.jsonl", **settings), QUESTIONS[kind], language
    )


@pytest.mark.parametrize(("kind", "questions", "language"), CASES, ids=IDS)
def test_guidelines_are_complete_and_plain(
    kind: Kind, questions: tuple[Question, ...], language: Language
) -> None:
    """Cells show Markdown as it is written, so there is no HTML, emphasis, links, tables or nested lists."""
    text = interface.guidelines(RoundSpec(kind, "x"), questions, language)
    lines = text.splitlines()
    for question in questions:
        assert f"## {interface.question_title(question.name, language)}" in lines
        assert interface.question_help(question.name, language) in lines
        for rating in question.ratings:
            assert f"- {interface.rating_text(question.name, rating, language)}" in lines
        for label in question.labels:
            start, end = (
                f(question.name, label, language)
                for f in (interface.label_text, interface.label_help)
            )
            assert any(line.startswith(f"- {start}") and line.endswith(end) for line in lines)
    # Care, help lines and privacy.
    assert text.count(CARE[language]) == 1
    for row in help_rows(language):
        assert lines.count(f"- {row}") == 1
    assert [part for part in REQUIRED[language] if part not in text] == []
    # No internal names, and only headings and lists.
    names = {q.name for asked in QUESTIONS.values() for q in asked if "_" in q.name}
    names |= {*SUBTASKS, *VIOLATIONS} - PLAIN_WORDS
    assert [name for name in names if name in text] == []
    assert re.findall(r"[a-z]+_[a-z]+|[<>*`|{}]|\]\(|^ ", text, re.MULTILINE) == []
    # Separate paragraphs that are short enough for a phone; only entries of a list are on consecutive lines.
    assert max(map(len, lines)) <= (300 if language == "en" else 150)
    for before, line in itertools.pairwise(lines):
        assert not (before and line) or (before.startswith("- ") and line.startswith("- ")), line
        assert before or line
    assert len(text) <= (9_700 if language == "en" else 4_000)
    # What they consent to comes before all else that is asked of them.
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[0] == CONSENT[language]
    assert text.count(CONSENT[language]) == 1


@pytest.mark.parametrize(
    ("settings", "english", "chinese", "there"),
    [
        ({"overlap": 7}, "7 people", "7 个人", True),
        ({"kind": "adjudication"}, "by one person", "由一个人来答", True),
        ({"adaptive": Adaptive(on=True, minimum=3)}, "3 to 20", "3 到 20", True),
        ({}, "neither the answers of others nor those of a model", "也看不到模型的答案", True),
        (
            {"suggest": True},
            "you may see what a model would answer",
            "可能会显示模型给的答案",
            True,
        ),
        ({"minutes": 0.0}, "paid work", "计酬", False),
        # Spreadsheets have no times; on a server, annotators can look up each other's user names.
        ({}, "how long they take", "用了多少时间", False),
        ({"where": "argilla"}, "Others who answer", "同在这里答题的人", True),
        ({"where": "label-studio"}, "could open your answers", "有可能打开你的答案", True),
        ({}, "When you are done", "全部做完以后", False),
        (
            {"completion": "C1X2", "where": "argilla"},
            "invited you: C1X2\n",
            "填这个完成码： C1X2\n",
            True,
        ),
        (
            {"completion": "https://example.org/c?cc=1", "where": "label-studio"},
            "this link: https://",
            "这个链接： https://",
            True,
        ),
        # A workbook shows the code when everything is answered.
        (
            {"completion": "C1X2"},
            "shows a code: enter it",
            "里会出现一个完成码，请填到邀请你的页面上",
            True,
        ),
        (
            {"completion": "https://example.org/c"},
            "shows a link: open it",
            "里会出现一个链接，请打开它",
            True,
        ),
        ({"completion": "C1X2"}, "C1X2", "C1X2", False),
        (
            {"completion": "C1X2"},
            "we check that every item is",
            "会核对每一条是不是都答过或跳过",
            True,
        ),
        (
            {},
            "ask the person who invited you. No other contact",
            "请找邀请你的人。这一轮没有写明别的联系方式",
            True,
        ),
        ({}, "No ethics review is named", "没有写明伦理审查", True),
        ({"contact": "Lin, lin@example.org"}, "complaints: Lin, lin@", "请联系：Lin, lin@", True),
        (
            {"contact": "Lin, lin@example.org"},
            "To withdraw, write there at any time",
            "想退出，随时用上面的方式",
            True,
        ),
        ({"contact": "Lin, lin@example.org"}, "No other contact", "没有写明别的联系方式", False),
        (
            {"ethics": "board of X, no. 7"},
            "Ethics review: board of X, no. 7\n",
            "伦理审查：board of X, no. 7\n",
            True,
        ),
        ({"care": Care(country="DE")}, "- Germany: call 0800 111", "- 德国：拨打0800 111", True),
        ({"care": Care(20, 0.2)}, "at most 4 speak of", "不超过 4 条", True),
        (
            {"care": Care(10, 0.0)},
            "None of them should speak of a crisis",
            "不应有谈到危机的",
            True,
        ),
    ],
)
def test_texts_depend_on_the_settings(
    settings: dict[str, Any], english: str, chinese: str, there: bool
) -> None:
    assert (english in written(**settings), chinese in written(language="zh", **settings)) == (
        there,
        there,
    )


def test_custom_guidelines_keep_the_section_on_care(tmp_path: Path) -> None:
    (tmp_path / "zh.md").write_text("# Ours\n\nRead slowly. 慢慢读。\n", encoding="utf-8-sig")
    text = written(language="zh", guidelines=str(tmp_path))
    assert text.startswith(f"{CONSENT['zh']}\n\n- ")
    assert "\n\n# Ours\n\nRead slowly. 慢慢读。\n\n## " in text
    assert CARE["zh"] in text
    assert interface.question_title("keep", "zh") not in text
    with pytest.raises(RoundError, match=r"en\.md: the guidelines cannot be read .*No such file"):
        written(guidelines=str(tmp_path))
    (tmp_path / "en.md").write_bytes("# Café\n".encode("utf-16"))
    with pytest.raises(RoundError, match="write them as text in UTF-8"):
        written(guidelines=str(tmp_path))


def test_the_notice_of_a_crisis_has_the_help_lines_of_the_annotators_country() -> None:
    """They stood in the guidelines alone, which Argilla hides behind a bar."""
    everywhere = interface.notice_help_lines(RoundSpec("crowd", "x"), "en")
    assert everywhere == help_rows("en")
    local = interface.notice_help_lines(RoundSpec("crowd", "x", care=Care(country="IE")), "zh")
    assert local[0].startswith("爱尔兰：拨打116 123")
    assert len(local) == 2
    unserved = interface.notice_help_lines(RoundSpec("crowd", "x", care=Care(country="IN")), "en")
    assert unserved[0].endswith("112")
    with pytest.raises(ConfigError, match="no country 'XX' in the help directory"):
        RoundSpec.from_dict(
            {"kind": "crowd", "items": "x", "care": {"country": "XX"}}, "round.toml"
        )


@pytest.mark.parametrize(
    ("language", "claims"),
    [("en", ("harmless", "everyday talk")), ("zh", ("无害", "多数是", "安全的对话"))],
)
def test_guidelines_of_a_sample_do_not_say_what_it_will_find(
    language: Language, claims: tuple[str, ...]
) -> None:
    """Its title was that the conversations had been found harmless, which nobody had read."""
    spec = RoundSpec(kind="safety", items="x", sample=Sample(keep=5))
    text = interface.guidelines(spec, questions_for("safety", [], READING_QUESTIONS), language)
    assert [claim for claim in claims if claim in text] == []


@pytest.mark.parametrize(
    ("language", "rule"),
    [
        ("en", "two of you or more say No and nobody says Yes or Not sure"),
        ("zh", "没有人选“有”或“拿不准”"),
    ],
)
def test_experts_are_told_that_one_yes_leaves_it_open(language: Language, rule: str) -> None:
    """They were told that two No settle it, which is wrong where a third says yes."""
    spec = RoundSpec(kind="expert", items="x")
    assert rule in interface.guidelines(
        spec, questions_for("expert", [], READING_QUESTIONS), language
    )

"""Guidelines of every kind and language: complete, and readable as plain text."""

from __future__ import annotations

import datetime
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import KINDS, QUESTIONS, VIOLATIONS, Kind, Question, questions_for
from h2htalk.rounds.settings import Adaptive, Care, RoundSpec
from h2htalk.rounds.texts.guidelines import _render, _values, guidelines
from h2htalk.rounds.texts.interface import label_help, label_text, question_help, question_title, rating_text
from h2htalk.text.help_lines import help_rows, read_help_lines

TIES = questions_for("adjudication", [["keep", "drop"], ["dialogue_base", "dialogue_emotion"]])
ROUNDS: tuple[tuple[Kind, tuple[Question, ...]], ...] = (
    *((kind, QUESTIONS[kind]) for kind in KINDS),
    ("adjudication", TIES),
)
CASES = [(kind, questions, language) for kind, questions in ROUNDS for language in LANGUAGES]
IDS = [f"{kind}-{questions[0].name}-{language}" for kind, questions, language in CASES]
every = pytest.mark.parametrize(("kind", "questions", "language"), CASES, ids=IDS)
in_both = pytest.mark.parametrize("language", LANGUAGES)
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
WORDS = {"manipulation", "other", "sexual", "demeaning", "boundary", "privacy"}


def written(kind: Kind = "crowd", language: Language = "en", **settings: Any) -> str:
    return guidelines(RoundSpec(kind, "items.jsonl", **settings), QUESTIONS[kind], language)


def own_folder(folder: Path, text: str, encoding: str = "utf-8") -> str:
    for language in LANGUAGES:
        (folder / f"{language}.md").write_text(text, encoding=encoding)
    return str(folder)


# --- What stands in each ----------------------------------------------------------------------------------------


@every
def test_guidelines_are_complete_and_plain(kind: Kind, questions: tuple[Question, ...], language: Language) -> None:
    """Cells show Markdown as it is written, so there is no HTML, emphasis, links, tables or nested lists."""
    text = guidelines(RoundSpec(kind, "x"), questions, language)
    lines = text.splitlines()
    # Questions and choices.
    for question in questions:
        assert f"## {question_title(question.name, language)}" in lines
        assert question_help(question.name, language) in lines
        for rating in question.ratings:
            assert f"- {rating_text(question.name, rating, language)}" in lines
        for label in question.labels:
            start, end = (f(question.name, label, language) for f in (label_text, label_help))
            assert any(line.startswith(f"- {start}") and line.endswith(end) for line in lines)
    titles = [title for title in lines if title.startswith("## ")]
    assert len(titles) == len(set(titles))
    # Care, help lines and privacy.
    assert text.count(CARE[language]) == 1
    for row in help_rows(language):
        assert lines.count(f"- {row}") == 1
    assert [part for part in REQUIRED[language] if part not in text] == []
    # No internal names, and only headings and lists.
    names = {q.name for asked in QUESTIONS.values() for q in asked if "_" in q.name}
    names |= {*SUBTASKS, *VIOLATIONS} - WORDS
    names |= {field for subtask in SUBTASKS.values() for field, _ in subtask.inputs if "_" in field}
    assert [name for name in names if name in text] == []
    assert re.findall(r"[a-z]+_[a-z]+|[<>*`|{}]|\]\(|^ ", text, re.MULTILINE) == []
    assert lines[0].startswith("# ")
    assert text.count("\n# ") == 0
    # Separate paragraphs that are short enough for a phone.
    assert max(map(len, lines)) <= (300 if language == "en" else 150)
    for before, line in itertools.pairwise(lines):
        # Only entries of a list are on consecutive lines.
        assert not (before and line) or (before.startswith("- ") and line.startswith("- ")), line
        assert before or line
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert len(text) <= (9_000 if language == "en" else 3_200)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_user_names_are_visible_on_a_server(language: Language) -> None:
    """The guidelines promised that only the people who run the round see user names."""
    kind, questions = ROUNDS[0]
    texts = [guidelines(RoundSpec(kind, "x", where=name), questions, language) for name in ("spreadsheets", "argilla")]
    only, others = {"en": ("Only the people", "Others who answer"), "zh": ("只有本轮", "同在这里答题的人")}[language]
    assert [(only in text, others in text) for text in texts] == [(True, False), (False, True)]


# --- What a round's settings change -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "english", "chinese", "there"),
    [
        ({}, "20 people", "20 个人", True),
        ({"overlap": 7}, "7 people", "7 个人", True),
        ({"kind": "adjudication"}, "by one person", "由一个人来答", True),
        ({"adaptive": Adaptive(on=True, minimum=3)}, "3 to 20", "3 到 20", True),
        ({}, "neither the answers of others nor those of a model", "也看不到模型的答案", True),
        (
            {"suggest": True},
            "neither the answers of others nor those of a model",
            "也看不到模型的答案",
            False,
        ),
        ({}, "you may see what a model would answer", "可能会显示模型给的答案", False),
        ({"suggest": True}, "you may see what a model would answer", "可能会显示模型给的答案", True),
        ({}, "paid work", "计酬", True),
        ({"minutes": 1.5}, "1.5 minutes", "1.5 分钟", True),
        ({"minutes": 1.0}, "1 minute of", "1 分钟", True),
        ({"minutes": 0.0}, "paid work", "计酬", False),
        # Spreadsheets have no times.
        ({}, "how long they take", "用了多少时间", False),
        ({"where": "argilla"}, "how long they take", "用了多少时间", True),
    ],
)
def test_texts_depend_on_the_settings(settings: dict[str, Any], english: str, chinese: str, there: bool) -> None:
    assert (english in written(**settings), chinese in written(language="zh", **settings)) == (there, there)


@pytest.mark.parametrize(
    ("care", "english", "chinese"),
    [
        (Care(20, 0.2), "at most 4 speak of", "不超过 4 条"),
        (Care(5, 0.2), "at most 1 speaks of", "不超过 1 条"),
        (Care(3, 0.1), "at most 1 speaks of", "不超过 1 条"),
        (Care(10, 1.0), "any of them may speak of a crisis", "每一条都可能谈到危机"),
        (Care(10, 0.0), "None of them should speak of a crisis", "不应有谈到危机的"),
    ],
)
def test_share_of_crises(care: Care, english: str, chinese: str) -> None:
    for language, said in (("en", english), ("zh", chinese)):
        text = guidelines(RoundSpec("crowd", "x", care=care), QUESTIONS["crowd"], language)
        assert said in text
        assert str(care.session_items) in text


@in_both
def test_dates_of_help_lines(language: Language) -> None:
    """Numbers change, and the lines had no date."""
    text = written(language=language)
    shown_lines = [
        line
        for line in read_help_lines().lines
        if line.text_for(language) and line.text_for(language) in "\n".join(help_rows(language))
    ]
    latest, oldest = max(line.date for line in shown_lines), min(line.date for line in shown_lines)
    months = {11: "November", 9: "September", 12: "December"}
    for date in (latest, oldest):
        shown = {
            "en": f"{date.day} {months.get(date.month)} {date.year}",
            "zh": f"{date.year} 年 {date.month} 月 {date.day} 日",
        }[language]
        assert text.count(shown) == 1


def test_help_lines_with_the_same_date(monkeypatch: pytest.MonkeyPatch) -> None:
    book = read_help_lines()
    day = datetime.date(2027, 1, 31)
    same = replace(
        book,
        directory={**book.directory, "date": day},
        lines=tuple(replace(line, date=day) for line in book.lines),
    )
    monkeypatch.setattr("h2htalk.rounds.texts.guidelines.read_help_lines", lambda: same)
    assert "Looked up on 31 January 2027 on pages of the lines themselves or of governments. Num" in written()
    assert "2027 年 1 月 31 日查自各热线或政府的网页。号" in written(language="zh")


@in_both
def test_ties_and_ratings_have_different_guidelines(language: Language) -> None:
    rated = guidelines(RoundSpec("adjudication", "x"), QUESTIONS["adjudication"], language)
    tied = guidelines(RoundSpec("adjudication", "x"), TIES, language)
    assert rated.splitlines()[0] != tied.splitlines()[0]
    assert question_title("rating", language) not in tied


def test_missing_variables_are_errors() -> None:
    """A missing value must not leave a gap in a sentence."""
    values = _values(RoundSpec("adjudication", "x", overlap=3), TIES, "en")
    for name, language in itertools.product(values, LANGUAGES):
        with pytest.raises(jinja2.UndefinedError):
            _render(f"{language}/adjudication.md.j2", {key: one for key, one in values.items() if key != name})


# --- A folder of the manager's own ------------------------------------------------------------------------------


@in_both
def test_custom_guidelines_keep_the_section_on_care(tmp_path: Path, language: Language) -> None:
    own = own_folder(tmp_path, "# Ours\n\nRead slowly. 慢慢读。\n", encoding="utf-8-sig")
    text = written(language=language, guidelines=own)
    assert text.startswith("# Ours\n\nRead slowly. 慢慢读。\n\n## ")
    assert CARE[language] in text
    assert all(row in text for row in help_rows(language))
    assert question_title("keep", language) not in text


@in_both
def test_missing_custom_guidelines(tmp_path: Path, language: Language) -> None:
    with pytest.raises(RoundError, match=rf"{language}\.md: file not found.*write it"):
        written(language=language, guidelines=str(tmp_path))


def test_unreadable_custom_guidelines(tmp_path: Path) -> None:
    (tmp_path / "en.md").write_bytes("# Café\n".encode("utf-16"))
    with pytest.raises(RoundError, match="save them as text in UTF-8"):
        written(guidelines=str(tmp_path))
    (tmp_path / "en.md").write_text(" \n")
    with pytest.raises(RoundError, match="are empty"):
        written(guidelines=str(tmp_path))
    (tmp_path / "zh.md").mkdir()
    with pytest.raises(RoundError, match="cannot be read"):
        written(language="zh", guidelines=str(tmp_path))

"""Reading memory blocks: what is tolerated, what is broken, what is the null class."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import RECORDS, find_language
from h2htalk.text.contracts.contract import check
from h2htalk.text.contracts.memory_blocks import MemoryBlock, is_null_memory, parse_memory

EN = "Memory Content: Starts a new job on Monday\nMemory Category: work\nMemory Importance: 1"
ZH = "记忆内容：周一去港务局上班\n记忆类别：工作\n记忆重要性：1"
JOB = MemoryBlock("Starts a new job on Monday", "work", 1)
FRIDAY = MemoryBlock("Meets Ana: 20:00 (every Friday）", "work", 1)
HARBOUR = MemoryBlock("周一去港务局上班", "work", 1)

READ = [
    (EN, "en", JOB),
    (ZH, "zh", HARBOUR),
    ("\n\n  " + EN.replace("\n", "  \n  ") + "\n", "en", JOB),
    (EN.replace("Starts a new job on Monday", '"Starts a new job on Monday"'), "en", JOB),
    (ZH.replace("周一去港务局上班", "「周一去港务局上班」"), "zh", HARBOUR),
    (EN.replace("Category:", "category :").replace("work", "WORK"), "en", JOB),
    (EN.replace("work", "work.").replace("importance: 1", "importance: 1."), "en", JOB),
    (ZH.replace("：1", "：１"), "zh", HARBOUR),
    (ZH.replace("记忆类别", "记忆 类别"), "zh", HARBOUR),
    (EN.replace(JOB.content, FRIDAY.content), "en", FRIDAY),
]


@pytest.mark.parametrize(("text", "language", "block"), READ)
def test_what_leaves_no_doubt_is_read(text: str, language: str, block: MemoryBlock) -> None:
    parse = parse_memory(text, language)  # type: ignore[arg-type]
    assert parse.violations == ()
    assert parse.blocks == (block,)
    assert not parse.is_null


BROKEN = [
    ("the last line is missing", EN.rsplit("\n", 1)[0], {"memory_block"}),
    ("cut off in the middle of a label", EN[: EN.index("Importance")], {"memory_block"}),
    ("cut off before the value", EN[:-1], {"importance"}),
    ("a line twice", EN.replace("work", "work\nMemory Category: food"), {"memory_block"}),
    ("another order", "\n".join(reversed(EN.split("\n"))), {"memory_block"}),
    ("bold labels", EN.replace("Memory Content:", "**Memory Content:**"), {"memory_block"}),
    ("words in front", "Sure! Here you go.\n\n" + EN, {"memory_block"}),
    ("an unknown category", EN.replace("work", "pets"), {"category"}),
    ("a category of the other language", EN.replace("work", "工作"), {"category"}),
    ("importance out of range", EN.replace(": 1", ": 3"), {"importance"}),
    ("importance with a gloss", EN.replace(": 1", ": 1 (three months)"), {"importance"}),
    ("importance as a superscript", EN.replace(": 1", ": ²"), {"importance"}),
    ("empty content", EN.replace("Starts a new job on Monday", ""), {"memory_block"}),
    ("empty quotes", EN.replace("Starts a new job on Monday", '""'), {"memory_block"}),
    ("category and importance", EN.replace("work", "pets").replace(": 1", ": 9"), {"category", "importance"}),
    ("glued blocks", EN + "\n" + EN, {"memory_block"}),
    ("an empty line inside", EN.replace("\n", "\n\n", 1), {"memory_block"}),
    ("labels of the other language", ZH, {"memory_block"}),
    ("the null line in front", find_language("en").null_memory + "\n\n" + EN, {"null_with_blocks"}),
    ("the null line behind", EN + "\n\n" + find_language("en").null_memory, {"null_with_blocks"}),
    ("nothing", "", {"memory_block"}),
]


@pytest.mark.parametrize(("case", "text", "expected"), BROKEN, ids=[case for case, *_ in BROKEN])
def test_what_is_out_of_form_is_named(case: str, text: str, expected: set[str]) -> None:
    parse = parse_memory(text, "en")
    assert {violation.rule for violation in parse.violations} == expected
    assert not parse.is_null


def test_a_broken_block_hides_no_other() -> None:
    parse = parse_memory(f"{ZH}\n{ZH}", "zh")
    assert parse.blocks == (HARBOUR, HARBOUR)
    assert [v.detail for v in parse.violations] == ["no empty line between two blocks"]
    parse = parse_memory("Memory Content: half\n\n" + EN, "en")
    assert parse.blocks == (JOB,)
    assert [v.detail for v in parse.violations] == ["a block lacks Memory Category and Memory Importance"]


@pytest.mark.parametrize(
    ("category", "chinese"), [*zip(RECORDS["en"].memory_categories, RECORDS["zh"].memory_categories, strict=True)]
)
def test_all_24_categories_are_known_in_both_languages(category: str, chinese: str) -> None:
    assert parse_memory(EN.replace("work", category), "en").blocks[0].category == category
    assert parse_memory(ZH.replace("工作", chinese), "zh").blocks[0].category == category


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("No key information extracted.", "en", True),
        ("  No key information extracted\n", "en", True),
        ("No key information extracted。", "en", True),
        ("未提取到关键信息", "zh", True),
        ("no key information extracted.", "en", False),
        ('"No key information extracted."', "en", False),
        ("No key information was extracted.", "en", False),
        ("未提取到关键信息。", "en", False),
        ("No key information extracted.", "zh", False),
        ("\n".join([RECORDS["en"].null_memory] * 2), "en", False),
        ("", "en", False),
    ],
)
def test_the_null_class_is_exactly_the_null_line(text: str, language: str, expected: bool) -> None:
    assert is_null_memory(text, language) is expected  # type: ignore[arg-type]
    assert parse_memory(text, language).is_null is expected  # type: ignore[arg-type]


def test_content_has_a_limit_and_a_language() -> None:
    def found(content: str, language: str) -> set[str]:
        source, old = (EN, JOB.content) if language == "en" else (ZH, HARBOUR.content)
        text = source.replace(old, content)
        return {v.rule for v in check(text, "recollection_synthesis", language)}  # type: ignore[arg-type]

    assert found("word " * 14, "en") == set()
    assert found("word " * 15, "en") == {"too_long"}
    assert found("字" * 20, "zh") == set()
    assert found("字" * 21, "zh") == {"too_long"}
    assert found("Starts a new job on Monday", "zh") == {"language"}
    assert found("周一去港务局上班", "en") == {"language"}
    assert found("MBTI是INFJ", "zh") == set()

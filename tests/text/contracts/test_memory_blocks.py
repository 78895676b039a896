"""Reading memory blocks: what is tolerated, what is broken, what is the null class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import RECORDS
from h2htalk.text.contracts.contract import check
from h2htalk.text.contracts.memory_blocks import MemoryBlock, is_null_memory, parse_memory

EN = "Memory Content: Starts a new job on Monday\nMemory Category: work\nMemory Importance: 1"
ZH = "记忆内容：周一去港务局上班\n记忆类别：工作\n记忆重要性：1"
JOB = MemoryBlock("Starts a new job on Monday", "work", 1)
HARBOUR = MemoryBlock("周一去港务局上班", "work", 1)

GOLDEN = [row for _, row in read_jsonl(Path(__file__).parents[1] / "golden" / "memory.jsonl")]


@pytest.mark.parametrize("row", GOLDEN)
def test_what_leaves_no_doubt_is_read_and_what_is_out_of_form_is_named(
    row: dict[str, Any],
) -> None:
    parse = parse_memory(row["text"], row["language"])
    if "blocks" in row:
        assert (parse.violations, parse.is_null) == ((), False)
        assert parse.blocks == tuple(MemoryBlock(*block) for block in row["blocks"])
    elif "broken" in row:
        assert ({one.rule for one in parse.violations}, parse.is_null) == (
            set(row["broken"]),
            False,
        )
    else:
        assert is_null_memory(row["text"], row["language"]) is parse.is_null is row["null"]


def test_a_broken_block_hides_no_other() -> None:
    parse = parse_memory(f"{ZH}\n{ZH}", "zh")
    assert parse.blocks == (HARBOUR, HARBOUR)
    assert [v.detail for v in parse.violations] == ["no empty line between two blocks"]
    parse = parse_memory("Memory Content: half\n\n" + EN, "en")
    assert parse.blocks == (JOB,)
    assert [v.detail for v in parse.violations] == [
        "a block lacks Memory Category and Memory Importance"
    ]


@pytest.mark.parametrize(
    ("category", "chinese"),
    [*zip(RECORDS["en"].memory_categories, RECORDS["zh"].memory_categories, strict=True)],
)
def test_all_24_categories_are_known_in_both_languages(category: str, chinese: str) -> None:
    assert parse_memory(EN.replace("work", category), "en").blocks[0].category == category
    assert parse_memory(ZH.replace("工作", chinese), "zh").blocks[0].category == category


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

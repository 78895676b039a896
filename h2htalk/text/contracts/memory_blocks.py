"""Parse the answer of RecollectionSynthesis: memory blocks, or the null line (docs/reference/contracts.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import RECORDS, Language, find_language
from h2htalk.data.subtasks import MEMORY_CATEGORIES, MEMORY_IMPORTANCE
from h2htalk.errors import shorten
from h2htalk.text.contracts.violations import Violation

_FINAL_MARKS = ".。．｡!！"
_CATEGORIES = {
    language: {own.casefold(): name for own, name in zip(record.memory_categories, MEMORY_CATEGORIES, strict=True)}
    for language, record in RECORDS.items()
}
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』"}


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """One memory: its content, its category by the English name, its importance 0, 1 or 2."""

    content: str
    category: str
    importance: int


@dataclass(frozen=True, slots=True)
class MemoryParse:
    """The content of an answer: the null class, or blocks.

    `blocks` are those that are complete and valid, also when others are not; `violations` names the others' faults.
    """

    is_null: bool
    blocks: tuple[MemoryBlock, ...] = ()
    violations: tuple[Violation, ...] = ()


def is_null_memory(text: str, language: Language) -> bool:
    """Whether the answer is the null class: exactly the language's null line, final mark optional."""
    text = text.strip()
    if text and text[-1] in _FINAL_MARKS:
        text = text[:-1].rstrip()
    return text == find_language(language).null_memory.rstrip(_FINAL_MARKS)


def parse_memory(text: str, language: Language) -> MemoryParse:
    """Parse memory blocks or the null line. Never raises.

    Both widths of the colon and of digits, a pair of quotes around a value, letter case and extra spaces are
    accepted; any other deviation from docs/reference/contracts.md is a violation.
    """
    if is_null_memory(text, language):
        return MemoryParse(is_null=True)
    nothing = Violation("memory_block", "no memory block and not the null line")
    found = [*_read(text, language)] or [nothing]
    blocks = tuple(one for one in found if isinstance(one, MemoryBlock))
    return MemoryParse(False, blocks, tuple(one for one in found if isinstance(one, Violation)))


def own_lines(text: str, language: Language) -> list[str]:
    """Return what the model itself wrote: the contents, and lines that are not part of a block.

    Labels, categories and importances are in every prompt and are no evidence of language or leakage.
    """
    lines = ((line, _split_label(line, language)) for line in text.splitlines())
    return [field[1] if field else line for line, field in lines if field is None or field[0] == 0]


def _read(text: str, language: Language) -> Iterator[MemoryBlock | Violation]:
    """Yield blocks and faults line by line; `fields` is the block in progress."""
    labels, fields = find_language(language).memory_labels, list[str]()
    after_block = blank_inside = False
    for line in text.strip().splitlines():
        if not line.strip():
            after_block, blank_inside = False, bool(fields)
            continue
        labelled = _split_label(line, language)
        if labelled is None and is_null_memory(line, language):
            yield Violation("null_with_blocks", "the null line together with other text")
        elif labelled is None:
            yield Violation("memory_block", f"not a line of a memory block: {shorten(line)}")
        if labelled is None:
            continue
        index, value = labelled
        if index == 0 and fields:  # the previous block lacks its end
            yield _incomplete(labels[len(fields) :])
            fields, blank_inside = [], False
        if index != len(fields):
            yield Violation("memory_block", f"{labels[index]!r} out of order")
            continue
        if index == 0 and after_block:
            yield Violation("memory_block", "no empty line between two blocks")
        if index > 0 and blank_inside:
            yield Violation("memory_block", "an empty line inside a block")
        fields.append(value)
        blank_inside, after_block = False, index == 2
        if after_block:
            yield from _read_block(fields, language)
            fields = []
    if fields:
        yield _incomplete(labels[len(fields) :])


def _incomplete(missing: Sequence[str]) -> Violation:
    return Violation("memory_block", f"a block lacks {' and '.join(missing)}")


def _read_block(fields: Sequence[str], language: Language) -> Iterator[MemoryBlock | Violation]:
    content, category, importance = fields
    known = _CATEGORIES[language].get(_collapse(category.rstrip(_FINAL_MARKS)).casefold())
    level = importance.rstrip(_FINAL_MARKS)
    if not content:
        yield Violation("memory_block", "a block without content")
    if known is None:
        yield Violation("category", f"{shorten(category)!r} is not one of the 24")
    if not (len(level) == 1 and level.isdecimal() and int(level) in MEMORY_IMPORTANCE):
        yield Violation("importance", f"{shorten(importance)!r} is not 0, 1 or 2")
    elif content and known is not None:
        yield MemoryBlock(content, known, int(level))


def _split_label(line: str, language: Language) -> tuple[int, str] | None:
    """Split a labelled line into `(field index, value)`, else return None."""
    label, *rest = re.split("[:：]", line, maxsplit=1)
    label = _collapse(label) if find_language(language).spaced else re.sub(r"\s", "", label)
    labels = [one.casefold() for one in find_language(language).memory_labels]
    if not rest or label.casefold() not in labels:
        return None
    value = rest[0].strip()
    if len(value) >= 2 and _QUOTES.get(value[0]) == value[-1]:
        value = value[1:-1].strip()
    return labels.index(label.casefold()), value


def _collapse(text: str) -> str:
    return " ".join(text.split())

"""Parse the answer of RecollectionSynthesis: memory blocks, or the null line (docs/reference/contracts.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from h2htalk.data.languages import Language, find_language
from h2htalk.data.subtasks import MEMORY_CATEGORIES, MEMORY_IMPORTANCE
from h2htalk.errors import shorten
from h2htalk.text.contracts.violations import Violation

_FINAL_MARKS = ".。．｡!！"
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
    blocks: list[MemoryBlock] = []
    violations: list[Violation] = []
    for block in _read(text, language):
        if isinstance(block, MemoryBlock):
            blocks.append(block)
        else:
            violations.append(block)
    if not blocks and not violations:
        violations.append(Violation("memory_block", "no memory block and not the null line"))
    return MemoryParse(is_null=False, blocks=tuple(blocks), violations=tuple(violations))


def own_lines(text: str, language: Language) -> list[str]:
    """Return what the model itself wrote: the contents, and lines that are not part of a block.

    Labels, categories and importances are in every prompt and are no evidence of language or leakage.
    """
    lines = []
    for line in text.splitlines():
        labelled = _split_label(line, language)
        if labelled is None:
            lines.append(line)
        elif labelled[0] == 0:
            lines.append(labelled[1])
    return lines


def _read(text: str, language: Language) -> Iterator[MemoryBlock | Violation]:
    """Yield blocks and faults line by line; `fields` is the block in progress."""
    labels = find_language(language).memory_labels
    fields: list[str] = []
    after_block = blank_inside = False
    for line in text.strip().splitlines():
        if not line.strip():
            after_block = False
            blank_inside = bool(fields)
            continue
        labelled = _split_label(line, language)
        if labelled is None:
            if is_null_memory(line, language):
                yield Violation("null_with_blocks", "the null line together with other text")
            else:
                yield Violation("memory_block", f"not a line of a memory block: {shorten(line)}")
            continue
        index, value = labelled
        if index == 0 and fields:  # the previous block lacks its end
            yield _incomplete(labels[len(fields) :])
            fields = []
            blank_inside = False
        if index != len(fields):
            yield Violation("memory_block", f"{labels[index]!r} out of order")
            continue
        if index == 0 and after_block:
            yield Violation("memory_block", "no empty line between two blocks")
        if index > 0 and blank_inside:
            yield Violation("memory_block", "an empty line inside a block")
        fields.append(value)
        blank_inside = False
        after_block = index == 2
        if after_block:
            yield from _read_block(fields, language)
            fields = []
    if fields:
        yield _incomplete(labels[len(fields) :])


def _incomplete(missing: Sequence[str]) -> Violation:
    return Violation("memory_block", f"a block lacks {' and '.join(missing)}")


def _read_block(fields: Sequence[str], language: Language) -> Iterator[MemoryBlock | Violation]:
    content, category, importance = fields
    name = _category_names(language).get(_collapse(category.rstrip(_FINAL_MARKS)).casefold())
    level = importance.rstrip(_FINAL_MARKS)
    if not content:
        yield Violation("memory_block", "a block without content")
    if name is None:
        yield Violation("category", f"{shorten(category)!r} is not one of the 24")
    if not (len(level) == 1 and level.isdecimal() and int(level) in MEMORY_IMPORTANCE):
        yield Violation("importance", f"{shorten(importance)!r} is not 0, 1 or 2")
    elif content and name is not None:
        yield MemoryBlock(content=content, category=name, importance=int(level))


@cache
def _category_names(language: Language) -> dict[str, str]:
    """The English names of the categories, by the language's own ones in any letter case."""
    own_names = [name.casefold() for name in find_language(language).memory_categories]
    return dict(zip(own_names, MEMORY_CATEGORIES, strict=True))


def _split_label(line: str, language: Language) -> tuple[int, str] | None:
    """Split a labelled line into `(field index, value)`, else return None."""
    record = find_language(language)
    colon = re.search("[:：]", line)
    if colon is None:
        return None
    label = line[: colon.start()].casefold()
    label = _collapse(label) if record.spaced else re.sub(r"\s", "", label)
    labels = [name.casefold() for name in record.memory_labels]
    if label not in labels:
        return None
    value = line[colon.end() :].strip()
    if len(value) >= 2 and _QUOTES.get(value[0]) == value[-1]:
        value = value[1:-1].strip()
    return labels.index(label), value


def _collapse(text: str) -> str:
    return " ".join(text.split())

"""Parse the answer of RecollectionSynthesis: memory blocks, or the null line (docs/contracts.md)."""

from __future__ import annotations

import re
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
    accepted; any other deviation from docs/contracts.md is a violation.
    """
    if is_null_memory(text, language):
        return MemoryParse(is_null=True)
    reader = _Reader(language)
    for line in text.strip().splitlines():
        reader.read(line)
    reader.close()
    if not reader.blocks and not reader.violations:
        reader.violations.append(Violation("memory_block", "no memory block and not the null line"))
    return MemoryParse(False, tuple(reader.blocks), tuple(reader.violations))


def own_lines(text: str, language: Language) -> list[str]:
    """Return what the model itself wrote: the contents, and lines that are not part of a block.

    Labels, categories and importances are in every prompt and are no evidence of language or leakage.
    """
    own: list[str] = []
    for line in text.splitlines():
        labelled = _split_label(line, language)
        if labelled is None:
            own.append(line)
        elif labelled[0] == 0:
            own.append(labelled[1])
    return own


class _Reader:
    """Parse an answer line by line; `fields` is the block in progress."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.blocks: list[MemoryBlock] = []
        self.violations: list[Violation] = []
        self.fields: list[str] = []
        self.after_block = False  # the previous line ended a block
        self.blank_inside = False

    def read(self, line: str) -> None:
        if not line.strip():
            self.after_block = False
            self.blank_inside = bool(self.fields)
            return
        labelled = _split_label(line, self.language)
        if labelled is None:
            self._read_other(line)
            return
        index, value = labelled
        if index == 0 and self.fields:  # the previous block lacks its end
            self.close()
        if index != len(self.fields):
            self._broken(f"{find_language(self.language).memory_labels[index]!r} out of order")
            return
        if index == 0 and self.after_block:
            self._broken("no empty line between two blocks")
        if index > 0 and self.blank_inside:
            self._broken("an empty line inside a block")
        self.blank_inside = False
        self.after_block = index == 2
        self.fields.append(value)
        if index == 2:
            self._finish()

    def close(self) -> None:
        """End the text or the block: a block in progress is incomplete."""
        if self.fields:
            missing = find_language(self.language).memory_labels[len(self.fields) :]
            self._broken(f"a block lacks {' and '.join(missing)}")
        self.fields = []
        self.blank_inside = False

    def _read_other(self, line: str) -> None:
        if is_null_memory(line, self.language):
            self.violations.append(Violation("null_with_blocks", "the null line together with other text"))
        else:
            self._broken(f"not a line of a memory block: {shorten(line)}")

    def _finish(self) -> None:
        content, category, importance = self.fields
        self.fields = []
        known = _CATEGORIES[self.language].get(_collapse(category.rstrip(_FINAL_MARKS)).casefold())
        level = importance.rstrip(_FINAL_MARKS)
        if not content:
            self._broken("a block without content")
        if known is None:
            self.violations.append(Violation("category", f"{shorten(category)!r} is not one of the 24"))
        if not (len(level) == 1 and level.isdecimal() and int(level) in MEMORY_IMPORTANCE):
            self.violations.append(Violation("importance", f"{shorten(importance)!r} is not 0, 1 or 2"))
        elif content and known is not None:
            self.blocks.append(MemoryBlock(content, known, int(level)))

    def _broken(self, detail: str) -> None:
        self.violations.append(Violation("memory_block", detail))


def _split_label(line: str, language: Language) -> tuple[int, str] | None:
    """Split a labelled line into `(field index, value)`, else return None."""
    label, colon, value = _split_at_colon(line)
    if not colon:
        return None
    label = _collapse(label) if find_language(language).spaced else re.sub(r"\s", "", label)
    for index, expected in enumerate(find_language(language).memory_labels):
        if label.casefold() == expected.casefold():
            return index, _unquote(value.strip())
    return None


def _split_at_colon(line: str) -> tuple[str, str, str]:
    match = re.search("[:：]", line)
    if match is None:
        return line, "", ""
    return line[: match.start()], match[0], line[match.end() :]


def _unquote(value: str) -> str:
    if len(value) >= 2 and _QUOTES.get(value[0]) == value[-1]:
        return value[1:-1].strip()
    return value


def _collapse(text: str) -> str:
    return " ".join(text.split())

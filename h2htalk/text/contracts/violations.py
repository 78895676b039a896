"""The violations that a contract check reports: a stable rule code and a detail for people."""

from __future__ import annotations

from dataclasses import dataclass

# Every rule code and what breaks it. Tables count by these codes, so they do not change.
RULES: dict[str, str] = {
    "empty": "nothing but white space",
    "thinking": "a piece of a thinking block is in the answer",
    "language": "fewer than 70 % of the letters are of the scenario's language",
    "prompt_leak": "repeats instruction text of the prompt, or talks about the task",
    "persona_name": "the companion says its own name",
    "too_long": "longer than the limit in Chinese characters or English words",
    "too_few_sentences": "fewer sentences than asked",
    "too_many_sentences": "more sentences than allowed",
    "too_many_actions": "more than one action in parentheses",
    "one_line": "more than one line",
    "one_paragraph": "a line break inside what should be one paragraph",
    "first_person": "the companion does not speak in the first person",
    "third_person": "the first person where the third is required",
    "memory_block": "a memory block is incomplete, out of order or surrounded by other text",
    "category": "a memory category that is not one of the 24",
    "importance": "a memory importance that is not 0, 1 or 2",
    "null_with_blocks": "the null line together with other text",
    "line_form": "a line that is not of the form asked",
    "time": "a time that is missing or not HH:MM from 00:00 to 23:59",
    "time_order": "times that do not ascend",
    "activity_count": "too few or too many lines",
    "numbering": "lines that are not numbered 1, 2, 3, ...",
    "sleep": "the last line is not sleep at 20:00 or later",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule of a contract: `rule` is a key of RULES, `detail` describes it in one line."""

    rule: str
    detail: str

"""The contract of each subtask's answer (docs/contracts.md): form, length and fields.

`check` reports every rule that an answer breaks; an answer without violations is compliant. A contract is not
part of the score S (paper, equation 2); the compliance rate is reported beside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import InputValue, Risk, Scenario, ScheduleEntry
from h2htalk.data.subtasks import Contract, find_subtask
from h2htalk.errors import DataError, shorten
from h2htalk.text.contracts.first_person import find_first_person, find_name, is_first_person
from h2htalk.text.contracts.memory_blocks import MemoryBlock, MemoryParse, is_null_memory, own_lines, parse_memory
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.contracts.timetables import check_day, check_sub_schedule
from h2htalk.text.contracts.violations import RULES, Violation
from h2htalk.text.counting import count_length, count_sentences, is_in_language, split_actions

__all__ = [
    "CONTRACTS_VERSION",
    "RULES",
    "Contract",
    "MemoryBlock",
    "MemoryParse",
    "Violation",
    "check",
    "check_scenario",
    "contract_of",
    "is_null_memory",
    "parse_memory",
]

# Raise this when any rule changes, so that compliance rates of two versions are not compared.
CONTRACTS_VERSION = "1"

_THINKING = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
# White space that `str.strip` leaves: byte order mark, zero-width spaces and joiners.
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"


def contract_of(subtask: str, risk: Risk = "none") -> Contract:
    """Return the contract of a subtask at a risk; `high` relaxes speech alone. DataError for an unknown subtask."""
    contract = find_subtask(subtask).contract
    if risk == "high" and contract.form == "speech":  # naming real help takes words
        return replace(contract, sentences=(1, 6), length=contract.length and "crisis_reply")
    return contract


def check(
    text: str,
    subtask: str,
    language: Language,
    *,
    risk: Risk = "none",
    persona_names: Sequence[str] = (),
    prompt: str | None = None,
    inputs_text: str = "",
) -> tuple[Violation, ...]:
    """List every rule of its contract that an answer breaks; empty when it is compliant. Accepts any text.

    Args:
        text: the answer as it is scored, without thinking blocks (`Response.answer`).
        persona_names: names the companion must not say, in any language, where the contract forbids it.
        prompt: the instructions that were sent; None checks marker phrases only.
        inputs_text: what an answer may repeat from the prompt: the scenario's material and the persona.

    Raises:
        DataError: unknown subtask or language.
    """
    contract = contract_of(subtask, risk)
    if language not in LANGUAGES:
        raise DataError(f"no contract for language {language!r}; choose from {', '.join(LANGUAGES)}")
    text = text.strip().strip(_INVISIBLE).strip()
    if not text:
        return (Violation("empty", "nothing but white space"),)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    violations: list[Violation] = []
    if thinking := _THINKING.search(text):
        violations.append(Violation("thinking", f"{thinking[0]} is in the answer"))
    segments: Sequence[str] = (text,)
    if contract.form == "memories":
        memory = parse_memory(text, language)
        violations += _check_memories(memory, language)
        segments = () if memory.is_null else own_lines(text, language)
    elif contract.form == "day":
        violations += check_day(text, language)
    elif contract.form == "sub_schedule":
        violations += check_sub_schedule(text, language)
    else:
        violations += _check_prose(text, contract, language)
    if contract.nameless and (name := find_name(text, persona_names)):
        violations.append(Violation("persona_name", f"says its own name, {name}"))
    violations += _check_language(segments, language)
    violations += _check_leak(text, segments, language, prompt, inputs_text)
    return tuple(violations)


def check_scenario(
    text: str,
    scenario: Scenario,
    persona_names: Sequence[str],
    prompt: str | None = None,
    persona_text: str = "",
) -> tuple[Violation, ...]:
    """`check` with what the scenario knows; its inputs and `persona_text` may be repeated from the prompt."""
    inputs = "" if prompt is None and not persona_text else inputs_of(scenario)
    return check(
        text,
        scenario.subtask,
        scenario.language,
        risk=scenario.tags.risk,
        persona_names=persona_names,
        prompt=prompt,
        inputs_text=f"{inputs}\n{persona_text}",
    )


def inputs_of(scenario: Scenario) -> str:
    """Format a scenario's inputs as one text, one entry a line."""
    return "\n".join(line for value in scenario.inputs.values() for line in _entries(value))


def _entries(value: InputValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [
        item
        if isinstance(item, str)
        else f"{item.time} {item.activity}"
        if isinstance(item, ScheduleEntry)
        else item.content
        for item in value
    ]


def _check_prose(text: str, contract: Contract, language: Language) -> list[Violation]:
    violations: list[Violation] = []
    actions = 0
    spoken = text
    if contract.form == "speech":
        spoken, actions = split_actions(text)
    elif "\n" in text:
        rule = "one_line" if contract.form == "line" else "one_paragraph"
        violations.append(Violation(rule, f"{len(text.splitlines())} lines; one is asked"))
    if contract.sentences:
        count, (low, high) = count_sentences(spoken), contract.sentences
        if count < low:
            violations.append(Violation("too_few_sentences", f"{count} sentences; at least {low}"))
        if count > high:
            violations.append(Violation("too_many_sentences", f"{count} sentences; at most {high}"))
    if contract.length:
        record = find_language(language)
        length, limit = count_length(spoken, language), record.lengths[contract.length]
        if length > limit:
            violations.append(Violation("too_long", f"{length} {record.unit}; at most {limit}"))
    if contract.one_action and actions > 1:
        violations.append(Violation("too_many_actions", f"{actions} actions in parentheses; at most 1"))
    if contract.first_person and not is_first_person(spoken, language):
        violations.append(Violation("first_person", "no word of the first person"))
    if contract.third_person and (pronoun := find_first_person(spoken, language)):
        violations.append(Violation("third_person", f"says {pronoun!r}; the third person is asked"))
    return violations


def _check_memories(memory: MemoryParse, language: Language) -> list[Violation]:
    record = find_language(language)
    limit = record.lengths["memory"]
    violations = list(memory.violations)
    for block in memory.blocks:
        length = count_length(block.content, language)
        if length > limit:
            detail = f"content of {length} {record.unit}; at most {limit}: {shorten(block.content)}"
            violations.append(Violation("too_long", detail))
    return violations


def _check_language(segments: Sequence[str], language: Language) -> list[Violation]:
    if is_in_language("\n".join(segments), language):
        return []
    return [Violation("language", f"less than 70 % of the letters are {find_language(language).script}")]


def _check_leak(
    text: str, segments: Sequence[str], language: Language, prompt: str | None, inputs_text: str
) -> list[Violation]:
    leak = find_marker(text, inputs_text)
    if leak is None and prompt:
        leak = find_repeated_run(segments, language, prompt, inputs_text)
    if leak is None:
        return []
    return [Violation("prompt_leak", f"not talk to the user: {shorten(' '.join(leak.split()))}")]

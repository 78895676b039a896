"""The contract of each subtask's answer (docs/reference/contracts.md): form, length and fields.

`check` reports every rule that an answer breaks; an answer without violations is compliant. A contract is not
part of the score S (paper, equation 2); the compliance rate is reported beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import Risk, Scenario, ScheduleEntry, Turn
from h2htalk.data.subtasks import Contract, find_subtask
from h2htalk.errors import DataError, shorten
from h2htalk.text.contracts.memory_blocks import MemoryParse, own_lines, parse_memory
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.contracts.violations import Violation
from h2htalk.text.counting import count_length, count_sentences, is_in_language, split_actions
from h2htalk.text.language_data import language_patterns
from h2htalk.text.tokens import chinese_words
from h2htalk.text.typography import seen_text

# Raise this when any rule changes, so that compliance rates of two versions are not compared.
CONTRACTS_VERSION = "2"  # 1 told kinds of space, line ends and invisible characters apart

_THINKING = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


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

    Raises DataError for an unknown subtask or language.
    """
    contract = contract_of(subtask, risk)
    if language not in LANGUAGES:
        raise DataError(
            f"no contract for language {language!r}; choose from {', '.join(LANGUAGES)}"
        )
    text = seen_text(text)
    if not text:
        return (Violation("empty", "nothing but white space"),)
    violations: list[Violation] = []
    thinking = _THINKING.search(text)
    if thinking:
        violations.append(Violation("thinking", f"{thinking[0]} is in the answer"))
    segments: Sequence[str] = (text,)
    if contract.form == "memories":
        memory = parse_memory(text, language)
        violations += _check_memories(memory, language)
        segments = () if memory.is_null else own_lines(text, language)
    elif contract.form == "day":
        violations += _check_day(text, language)
    elif contract.form == "sub_schedule":
        violations += _check_sub_schedule(text, language)
    else:
        violations += _check_prose(text, contract, language)
    name = _find_name(text, persona_names) if contract.nameless else None
    if name:
        violations.append(Violation("persona_name", f"says its own name, {name}"))
    if not is_in_language("\n".join(segments), language):
        script = find_language(language).script
        violations.append(Violation("language", f"less than 70 % of the letters are {script}"))
    leak = find_marker(text, inputs_text)
    if leak is None and prompt:
        leak = find_repeated_run(segments, language, prompt, inputs_text)
    if leak is not None:
        leaked = shorten(" ".join(leak.split()))
        violations.append(Violation("prompt_leak", f"not talk to the user: {leaked}"))
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
    lines: list[str] = []
    for value in scenario.inputs.values():
        if isinstance(value, str):
            lines.append(value)
        else:
            lines += map(_input_line, value)
    return "\n".join(lines)


def _input_line(entry: str | Turn | ScheduleEntry) -> str:
    if isinstance(entry, ScheduleEntry):
        return f"{entry.time} {entry.activity}"
    return entry if isinstance(entry, str) else entry.content


def _check_prose(text: str, contract: Contract, language: Language) -> Iterator[Violation]:
    spoken, actions = split_actions(text) if contract.form == "speech" else (text, 0)
    if contract.form != "speech" and "\n" in text:
        rule = "one_line" if contract.form == "line" else "one_paragraph"
        yield Violation(rule, f"{len(text.splitlines())} lines; one is asked")
    if contract.sentences:
        low, high = contract.sentences
        count = count_sentences(spoken)
        if count < low:
            yield Violation("too_few_sentences", f"{count} sentences; at least {low}")
        if count > high:
            yield Violation("too_many_sentences", f"{count} sentences; at most {high}")
    if contract.length:
        record = find_language(language)
        length = count_length(spoken, language)
        limit = record.lengths[contract.length]
        if length > limit:
            yield Violation("too_long", f"{length} {record.unit}; at most {limit}")
    if contract.one_action and actions > 1:
        yield Violation("too_many_actions", f"{actions} actions in parentheses; at most 1")
    if contract.first_person and not _is_first_person(spoken, language):
        yield Violation("first_person", "no word of the first person")
    pronoun = _find_first_person(spoken, language) if contract.third_person else None
    if pronoun:
        yield Violation("third_person", f"says {pronoun!r}; the third person is asked")


def _check_memories(memory: MemoryParse, language: Language) -> Iterator[Violation]:
    yield from memory.violations
    record = find_language(language)
    limit = record.lengths["memory"]
    for block in memory.blocks:
        length = count_length(block.content, language)
        if length > limit:
            content = shorten(block.content)
            yield Violation(
                "too_long", f"content of {length} {record.unit}; at most {limit}: {content}"
            )


# --- Timetables: `HH:MM Activity` lines and numbered sub-schedules ------------------------------------------------

ACTIVITIES = (2, 5)
LATEST_START_OF_EVENING = "20:00"

# Full-width digits, colon and point are read as their half-width forms.
_HALF_WIDTH = str.maketrans("０１２３４５６７８９：．", "0123456789:.")
_DAY_LINE = re.compile(r"(\d+:\d+)(?:\s+|(?=[\u3400-\u9fff]))([^\s\-–—:|,，、].*)")
_NUMBERED_LINE = re.compile(r"(\d+)\s?[.、)）]\s*(\S.*)")
_ANY_TIME = re.compile(r"(?<![\d:])\d+:\d+(?![\d:])")
_TIME = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)


def _check_day(text: str, language: Language) -> Iterator[Violation]:
    """Check ItineraryMiddle: 2-5 lines `HH:MM Activity`, times ascending, the last one sleep at 20:00 or later."""
    lines = _lines(text)
    limit = find_language(language).lengths["activity"]
    times: list[str] = []
    for line in lines:
        match = _DAY_LINE.fullmatch(line)
        if match is None:
            yield Violation("line_form", f"not HH:MM and an activity: {shorten(line)}")
            continue
        time, activity = match.groups()
        times.append(time)
        length = count_length(activity, language)
        if length > limit:
            yield Violation(
                "too_long", f"activity of {length}; at most {limit}: {shorten(activity)}"
            )
        yield from _check_person(activity, language)
    low, high = ACTIVITIES
    if not low <= len(lines) <= high:
        yield Violation("activity_count", f"{len(lines)} lines; {low} to {high} are asked")
    yield from _check_times(times)
    if lines and not _is_sleep(lines[-1], language):
        yield Violation(
            "sleep", f"the last line must be sleep at 20:00 or later: {shorten(lines[-1])}"
        )


def _check_sub_schedule(text: str, language: Language) -> Iterator[Violation]:
    """Check ItineraryAdvanced: at least 2 lines, numbered from 1, each with a time, times ascending, no first person.

    The time of a line is the first in it.
    """
    lines = _lines(text)
    times: list[str] = []
    numbers: list[int] = []
    for line in lines:
        match = _NUMBERED_LINE.fullmatch(line)
        if match is None:
            yield Violation("line_form", f"not a numbered line: {shorten(line)}")
            continue
        digits, activity = match.groups()
        number = int(digits[:6])
        numbers.append(number)
        time = _ANY_TIME.search(activity)
        if time is not None:
            times.append(time[0])
        else:
            yield Violation("time", f"line {digits[:6]} names no time HH:MM")
        yield from _check_person(activity, language)
    if numbers != list(range(1, len(numbers) + 1)):
        yield Violation("numbering", f"lines are numbered {shorten(', '.join(map(str, numbers)))}")
    if len(lines) < 2:
        yield Violation("activity_count", f"{len(lines)} line; at least 2 are asked")
    yield from _check_times(times)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.translate(_HALF_WIDTH).splitlines() if line.strip()]


def _check_person(line: str, language: Language) -> Iterator[Violation]:
    pronoun = _find_first_person(line, language)
    if pronoun:
        yield Violation("third_person", f"says {pronoun!r}: {shorten(line)}")


def _check_times(times: Sequence[str]) -> Iterator[Violation]:
    """Check that times are `HH:MM` and strictly ascend; invalid ones are left out of the order."""
    for time in times:
        if not _TIME.fullmatch(time):
            yield Violation("time", f"{shorten(time)} is not HH:MM, 00:00 to 23:59")
    for earlier, later in pairwise(filter(_TIME.fullmatch, times)):
        if earlier >= later:
            yield Violation("time_order", f"{later} comes after {earlier}")
            break


def _is_sleep(line: str, language: Language) -> bool:
    match = _DAY_LINE.fullmatch(line)
    if match is None or not _patterns(language)["sleep"].search(match[2]):
        return False
    return not _TIME.fullmatch(match[1]) or match[1] >= LATEST_START_OF_EVENING


# --- The first person, and the persona's own name ------------------------------------------------------------------

_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」")
_LATIN_NAME = re.compile(r"[^\u3400-\u9fff]+")


def _patterns(language: Language) -> Mapping[str, re.Pattern[str]]:
    return language_patterns("text/contracts/patterns", language)


def _is_first_person(text: str, language: Language) -> bool:
    """Whether a word of the first person stands in the text.

    A language that may leave the subject out (刚到工地) needs none, unless the text speaks of a third person.
    """
    if _patterns(language)["first_person"].search(text):
        return True
    third_person = _patterns(language).get("third_person")
    return third_person is not None and not third_person.search(text)


def _find_first_person(text: str, language: Language) -> str | None:
    """Find the first pronoun of the first person outside quotation marks, or None.

    A narrator in the third person may quote the first person.
    """
    match = _patterns(language)["first_person"].search(_QUOTATION.sub(" ", text))
    return match and match[0]


def _find_name(text: str, names: Sequence[str]) -> str | None:
    """Find the first of the names in the text, or None.

    A Latin name is matched whole in any letter case, and its first part (the given name) as it is written. A
    Chinese name is matched where it is a word: 苏晚 is not in 江苏晚上.
    """
    for name in filter(None, names):
        if _LATIN_NAME.fullmatch(name):
            match = _latin_pattern(name).search(text)
            if match is not None:
                return match[0]
        elif name in text and _is_word_in(name, text):
            return name
    return None


@lru_cache(maxsize=64)
def _latin_pattern(name: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in name.split()]
    full_name = r"\s+".join(words)
    given_name = words[0] if words else ""
    return re.compile(rf"(?<![^\W_])(?:(?i:{full_name})|{given_name})(?![^\W_])")


def _is_word_in(name: str, text: str) -> bool:
    """Whether an occurrence starts and ends at word borders.

    Only jieba's dictionary is used: its model of new words would join a name to its neighbours
    (喜欢顾言种的花). jieba is loaded only when the characters of the name occur.
    """
    edges = {0, *accumulate(len(token) for token in chinese_words().cut(text, HMM=False))}
    start = text.find(name)
    while start >= 0:
        if start in edges and start + len(name) in edges:
            return True
        start = text.find(name, start + 1)
    return False

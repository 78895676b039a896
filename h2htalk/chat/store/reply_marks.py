"""Warn where replies begin with a mark that no table knows, or hold a mark of a chat template.

What follows such a mark may be reasoning or a call of a tool, and is scored as the companion's words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.data.files import read_jsonl
from h2htalk.data.replies.reasoning_marks import opening_mark
from h2htalk.data.responses import CALLS, Response, read_outcomes
from h2htalk.errors import counted

# A warning is given for a mark that begins at least so many replies, and at least this share of all replies.
LEAST_REPLIES = 3
LEAST_SHARE = 0.05
# Marks of a call of a tool, which a server left in the text.
_TOOL_MARK = re.compile(
    r"(?i)[<\[]\|?(?:/?tools?|tool_?calls?|function(?:_?calls?)?|invoke|python_tag)\b"
)
# Marks of chat templates. No reply holds one where the server has the model's own template.
TEMPLATE_MARK = re.compile(
    r"<\|(?:im_start|im_end|eot_id|end_of_text|endoftext|start_header_id|end_header_id|begin_of_text|eom_id)\|>"
    r"|<(?:start|end)_of_turn>|\[/INST\]|<\|(?:user|end_of_turn|eot)\|>"
)


_NO_TOOLS = "turn off tools at the server, or give it the model's own chat template"
_TEMPLATE_ADVICE = "give the server the model's own chat template and stop tokens"
_NEW_RUN = "choose a new --out"


def stage_mark_warnings(folder: Path, stage: str, calls: Sequence[CallSettings]) -> Iterator[str]:
    """Yield the warnings of `mark_warnings` for the replies in a curation stage's folder, which have no references."""
    path = folder / CALLS
    answers: list[tuple[str, Sequence[str]]] = []
    for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
        for outcome in read_outcomes(record, where):
            if isinstance(outcome, Response):
                answers.append((outcome.answer, ()))
    engine, _ = parse_model(calls[0].model)
    yield from mark_warnings(
        answers,
        engine.name,
        calls[0].option,
        f"make the stage again with --from-stage {stage}",
        is_scored=False,
    )


def mark_warnings(
    replies: Iterable[tuple[str, Sequence[str]]],
    engine: str,
    option: str = "--engine-option",
    ask_anew: str = _NEW_RUN,
    is_scored: bool = True,
) -> Iterator[str]:
    """Yield a warning for each unknown mark that several replies begin with, and one for marks of chat templates.

    Args:
        replies: each answer with its item's references. A mark that a reference begins with was asked for.
        engine: the name of the model's engine; the advice names an option that it has.
        option: what the user types to set an engine option.
        ask_anew: how replies are asked for anew.
        is_scored: whether replies are scored; else the stage that asked for them goes on with them.
    """
    use = "is scored as the reply" if is_scored else "is read as part of the reply"
    marks = Counter[str]()
    template_marks = Counter[str]()
    total = 0
    with_template = 0
    for answer, references in replies:
        total += 1
        unasked_marks = set(TEMPLATE_MARK.findall(answer)) - _template_marks_of(references)
        if unasked_marks:
            with_template += 1
            template_marks.update(unasked_marks)
            continue
        mark = opening_mark(answer)
        if mark and not any(reference.lstrip().startswith(mark) for reference in references):
            marks[mark] += 1
    for mark, number in marks.most_common():
        if number >= max(LEAST_REPLIES, LEAST_SHARE * total):
            begin = f"{number:,} of {counted(total, 'reply', 'replies')} begin with {mark}"
            if _TOOL_MARK.match(mark):
                yield f"{begin}: a call of a tool, which nobody offered, {use}; {_NO_TOOLS}"
            else:
                advice = _advice(mark, engine, option, ask_anew, is_scored)
                yield f"{begin}: if reasoning follows, it {use}; {advice}"
    if with_template:
        named = ", ".join(f"{mark} ({number:,})" for mark, number in template_marks.most_common())
        have = "contains" if with_template == 1 else "contain"
        finding = f"{with_template:,} of {counted(total, 'reply', 'replies')} {have} marks of a chat template"
        use_of_text = "is scored too" if is_scored else "is read as part of the reply"
        yield f"{finding}: {named}; what follows them {use_of_text}: {_TEMPLATE_ADVICE}, and {ask_anew}"


def _template_marks_of(references: Sequence[str]) -> set[str]:
    """The marks of chat templates that the references of an item hold."""
    return {mark for reference in references for mark in TEMPLATE_MARK.findall(reference)}


def _advice(mark: str, engine: str, option: str, ask_anew: str, is_scored: bool) -> str:
    """What to do about a mark; the last three as of `mark_warnings`."""
    option_names = ENGINES[engine].option_names() if engine in ENGINES else frozenset[str]()
    if "think" in option_names:
        is_tag = mark.startswith("<") and not mark.startswith("<|")
        closing_mark = f"</{mark[1:]}" if is_tag else "CLOSE"
        return f"name its marks ({option} 'think={mark},{closing_mark}') and {ask_anew}"
    if "reasoning_parser" in option_names:
        return f"name vLLM's parser ({option} reasoning_parser=NAME) and {ask_anew}"
    if is_scored:
        return "take it out of the replies before they are scored"
    return f"have the model or its server leave it out, and {ask_anew}"

"""Warn where replies begin with a mark that no table knows: reasoning that is scored as the companion's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from h2htalk.chat.engines import ENGINES
from h2htalk.data.replies.reasoning_marks import opening_mark
from h2htalk.errors import counted

LEAST_REPLIES = 3  # that begin with one mark
LEAST_SHARE = 0.05  # of all replies
# Calls of tools that a server left in the text.
_TOOL_MARK = re.compile(
    r"(?i)[<\[]\|?(?:/?tools?|tool_?calls?|function(?:_?calls?)?|invoke|python_tag)\b"
)
# Marks of chat templates, which no reply holds where a server knows the model's own.
TEMPLATE_MARK = re.compile(
    r"<\|(?:im_start|im_end|eot_id|end_of_text|endoftext|start_header_id|end_header_id|begin_of_text|eom_id)\|>"
    r"|<(?:start|end)_of_turn>|\[/INST\]|<\|(?:user|end_of_turn|eot)\|>"
)


_NO_TOOLS = "turn off tools at the server, or give it the model's own chat template"
_TEMPLATE_ADVICE = (
    "give the server the model's own chat template and stop tokens, and choose a new --out"
)


def mark_warnings(replies: Iterable[tuple[str, Sequence[str]]], engine: str) -> Iterator[str]:
    """Yield a warning for each unknown mark that several replies begin with, and one for marks of chat templates.

    Args:
        replies: each answer, with the item's references: a mark that a reference begins with was asked for.
        engine: of the model, whose options the advice names.
    """
    marks = Counter[str]()
    template_marks = Counter[str]()
    total = 0
    with_template = 0
    for answer, references in replies:
        total += 1
        inner = set(TEMPLATE_MARK.findall(answer)) - _held(references)
        if inner:
            with_template += 1
            template_marks.update(inner)
            continue
        mark = opening_mark(answer)
        if mark and not any(reference.lstrip().startswith(mark) for reference in references):
            marks[mark] += 1
    for mark, number in marks.most_common():
        if number >= max(LEAST_REPLIES, LEAST_SHARE * total):
            begin = f"{number:,} of {counted(total, 'reply', 'replies')} begin with {mark}"
            if _TOOL_MARK.match(mark):
                yield f"{begin}: a call of a tool, which nobody offered, is scored as the reply; {_NO_TOOLS}"
            else:
                yield f"{begin}: if reasoning follows, it is scored as the reply; {_advice(mark, engine)}"
    if with_template:
        named = ", ".join(f"{mark} ({number:,})" for mark, number in template_marks.most_common())
        have = "contains" if with_template == 1 else "contain"
        of = f"{with_template:,} of {counted(total, 'reply', 'replies')} {have} marks of a chat template"
        yield f"{of}: {named}; what follows them is scored too: {_TEMPLATE_ADVICE}"


def _held(references: Sequence[str]) -> set[str]:
    """The marks of chat templates that the references of an item hold."""
    return {mark for reference in references for mark in TEMPLATE_MARK.findall(reference)}


def _advice(mark: str, engine: str) -> str:
    """What to do about a mark."""
    if engine in ENGINES and "think" in ENGINES[engine].option_names():
        closes = f"</{mark[1:]}" if mark.startswith("<") and not mark.startswith("<|") else "CLOSE"
        return f"name its marks (--engine-option 'think={mark},{closes}') and choose a new --out"
    if engine in ENGINES and "reasoning_parser" in ENGINES[engine].option_names():
        return "name vLLM's parser (--engine-option reasoning_parser=NAME) and choose a new --out"
    return "take it out of the replies before they are scored"

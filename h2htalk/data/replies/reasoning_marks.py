"""The marks that models and prompts put around reasoning, and around the answer, as patterns.

Those around reasoning are a table of their own, `reasoning_marks.toml`. `reasoning.py` splits a text by them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from h2htalk.data.files import read_toml


@dataclass(frozen=True, slots=True)
class ReasoningMark:
    """A pair of marks.

    Attributes:
        models: the models or programs that write it.
        opens: pattern of the opening mark.
        closes: pattern of the closing mark; empty for a tag that closes under the name that opened it (the group `tag`
            of `opens`).
    """

    models: str
    opens: str
    closes: str = ""


_TAGS = """
    reasoning reason thought thoughts thought_process analysis reflection scratchpad inner_thoughts internal_thoughts
    inner_monologue internal_monologue monologue chain_of_thought cot deliberation planning antthinking
    reasoning_process 内心独白 思考 推理
"""
_THOUGHT = "(?:think|thinking|thoughts?|reasoning)"
# A heading over reasoning, or a label before it.
HEADING = r"(?:(?:Internal |Inner )?(?:Thinking|Reasoning|Thoughts?|Monologue)|Chain[ -]of[ -]Thought)(?: process)?"
TAG_NAMES = "|".join(_TAGS.split())  # of tags that models write as text
TAG_ATTRIBUTES = r"(?:\s[^<>\n]{0,200})?"
THOUGHT_ZH = "(?:思考|思考过程|推理|推理过程|分析|内心独白)"
PATTERNS: Mapping[str, str] = {
    "TAG_NAMES": TAG_NAMES,
    "TAG_ATTRIBUTES": TAG_ATTRIBUTES,
    # Other tags whose name speaks of thought: `<deepthink>`, `<model_thoughts>`, `<think_fast>`.
    "TAG_OF_THOUGHT": rf"[a-z][\w:.-]{{0,30}}{_THOUGHT}(?:[_:.-]\w{{1,20}})?|{_THOUGHT}[_:.-]\w{{1,20}}",
    "KINDS": "(?:think|thinking|thoughts?|reasoning|cot)",
    "HEADING": HEADING,
    "THOUGHT_ZH": THOUGHT_ZH,
    "ANSWER_ZH": "(?:回答|回复|答案|正式回复|最终回答|最终回复|最终答案)",
}


@cache
def load_marks(section: Literal["special", "written"]) -> tuple[ReasoningMark, ...]:
    """Load the marks around reasoning.

    `special` ones are tokens of their own, which may stand anywhere; `written` ones are plain text, and open a reply.
    """
    marks = []
    for row in read_toml(Path(__file__).with_suffix(".toml"))[section]:
        for name, pattern in PATTERNS.items():
            for key in row.keys() - {"models"}:
                row[key] = row[key].replace(f"{{{name}}}", pattern)
        marks.append(ReasoningMark(**row))
    return tuple(marks)


# What stands around an answer: the opening and the closing mark. These are always taken off.
WRAPPERS: tuple[tuple[str, str], ...] = (
    (r"<answer\s*>", r"</answer\s*>"),
    (r"<\|START_(?:RESPONSE|TEXT)\|>", r"<\|END_(?:RESPONSE|TEXT)\|>"),
    (r"<\|begin_of_solution\|>", r"<\|end_of_solution\|>"),
    (r"<\|begin_of_box\|>", r"<\|end_of_box\|>"),
)
# Taken off after reasoning only: else they may be what a reply is about.
WRAPPER_AFTER_REASONING = (
    r"<(?P<tag>response|output|reply|final|final_answer|final_response|solution|回答|回复)\s*>",
    r"</(?P=tag)\s*>",
)
# How an answer may begin where a server knows no marks of a model.
_OPENING = re.compile(
    r"\s*(?:<[|｜][^|｜<>\n]{1,40}[|｜]?>|<[^\W\d][^<>\n]{0,40}>|(?-i:\[[A-Z][A-Z0-9_]{2,30}\])|◁[^◁▷\n]{1,40}▷|"
    rf"\*\*(?:{HEADING}|Analysis)\b[^*\n]{{0,30}}\*\*|\*(?:{HEADING}|Analysis):|\*\*{THOUGHT_ZH}[:：]?\*\*|"
    rf"\*(?=(?-i:[A-Z]))(?:{HEADING}|Analysis)\b[^*\n.…]{{0,30}}\*[ \t]*\n|"  # not `*thinking...*`, which is role play
    rf"> ?(?:{HEADING}|Analysis):|"
    rf"(?:#{{1,4}}|>)[ ]*\**(?:{HEADING}|Analysis|{THOUGHT_ZH})(?!\w)[^\n]{{0,20}}\n|:::[ ]*\w{{3,20}}[ \t]*\n|"
    r"[({\[](?:thinking|reasoning|thought process)(?:[:)}\]]|\b[^\n]{0,20}\n)|"
    rf"[{{\[]{{1,2}}(?:{HEADING}|Analysis)[}}\]]{{1,2}}|<!-- ?(?:{HEADING}|Analysis)\b[^<>\n]{{0,30}}-->|"
    r"My (?:thought|thinking|reasoning) process:|(?:Internal|Inner) monologue:|"
    r"💭|🤔 ?(?:thinking|reasoning)\b(?:\.{3}|…)?|"
    r"Thought for (?:about )?(?:an?|a few|[\d.]+) (?:seconds?|minutes?|moments?)\b|"
    r"\[\[ ?#{0,3} ?\w[^\[\]\n]{1,40}\]\]|[-=~]{3,}[ ]*(?:think|thinking|thoughts?|reasoning)\b[^\n]{0,20}\n|"
    r"(?:think|thinking|thoughts?|reasoning|analysis|思考|推理|分析)(?: process|过程)?[:：]?[ \t]*\n|"
    r"Here are my reasoning steps:|(?-i:(?:Thought|Thinking|Reasoning)(?: process)?:)(?=\s)|"
    r"[【（(](?:思考|推理|分析|内心独白|内心OS)(?:过程)?(?:】|[:：]))",
    re.IGNORECASE,
)
_FORMATTING_TAGS = (
    "a b br center code div em font h1 h2 h3 hr i img li ol p pre q s small span strong u ul"
)


def opening_mark(answer: str) -> str:
    """The mark that an answer begins with and that no table holds, as it may open reasoning; empty without one."""
    match = _OPENING.match(answer)
    if match is None:
        return ""
    mark = " ".join(match[0].split())
    name, _, _ = mark.lower().strip("<>").partition(" ")
    return "" if name in _FORMATTING_TAGS.split() else mark

"""Find prompt leakage in an answer: instruction text of the prompt, or sentences about the task.

With the prompt given, an answer leaks when it repeats a run of it. Marker phrases of the kinds found in
the original benchmark's references (refusals over the character setting, "改写后：", length limits in
parentheses, template tokens) are leaks with or without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import language_units

_SENTENCE = re.compile(r"[\n。！？!?]+|\.\s")
# A telephone number: the prompt asks to name the help line that it gives.
_PHONE = re.compile(
    r"(?<![\d:])(?:\d{3,}|\d{2,}(?:[ -]\d{2,})+|\d(?:-\d){2,})(?![\d:])(?!\s*(?:words|characters|个?汉?字))"
)

# Words that the prompt suggests: `ask kindly: "Are you safe right now?"`.
_QUOTATION = re.compile(r"\"[^\"\n]{1,120}\"|“[^“”\n]{1,120}”|「[^「」\n]{1,60}」")

_BREAK = "|"


def find_repeated_run(segments: Sequence[str], language: Language, prompt: str, allowed: str) -> str | None:
    """Find the first run of the prompt that a segment repeats and that is not in `allowed`, or None.

    Args:
        segments: the answer, in pieces; a run does not cross two of them.
        prompt: the text that was sent as instructions.
        allowed: what may be repeated: the scenario's material, the persona's description.
    """
    length = find_language(language).repeated_run
    source = _normalized(prompt, language)
    excuse: str | None = None
    for segment in segments:
        pieces = _pieces(segment, language)
        half = length // 2  # a whole run always holds a half one that starts at a multiple: few to look up
        halves = (pieces[start : start + half] for start in range(0, len(pieces) - half + 1, half))
        if not any(_join(run, language) in source for run in halves):
            continue
        for start in range(len(pieces) - length + 1):
            run = _join(pieces[start : start + length], language)
            if run not in source:
                continue
            if excuse is None:
                excuse = _join(_pieces(allowed, language), language)
            if run not in excuse:
                return run.strip()
    return None


def find_marker(text: str, allowed: str) -> str | None:
    """Find the first phrase about the task that is not in `allowed`."""
    lowered = text.lower()
    for needles, pattern in _MARKERS:
        if any(needle in lowered for needle in needles):
            match = pattern.search(text)
            if match is not None and match[0] not in allowed:
                return match[0].strip()
    return None


def _pieces(text: str, language: Language) -> list[str]:
    return language_units(text.lower().replace("’", "'"), language)


def _join(pieces: Iterable[str], language: Language) -> str:
    joint = find_language(language).joint
    return f"{joint}{joint.join(pieces)}{joint}"


# A run has a few prompts a language and subtask, or one a scenario where the prompt holds its material; then nearly
# all their lines are equal.
@lru_cache(maxsize=256)
def _normalized(prompt: str, language: Language) -> str:
    """Join the units of a prompt into one string."""
    return _join(filter(None, (_normalized_line(line, language) for line in prompt.splitlines())), language)


@lru_cache(maxsize=2048)
def _normalized_line(line: str, language: Language) -> str:
    """Join the units of a line; what may be repeated (quotations, sentences with a telephone number) is a break."""
    gap = find_language(language).joint
    parts = (
        _BREAK if part == _BREAK or _PHONE.search(part) else gap.join(_pieces(part, language))
        for part in _SENTENCE.split(_QUOTATION.sub(f"\n{_BREAK}\n", line))
    )
    return gap.join(filter(None, parts))


def _marker(needles: str, pattern: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    return tuple(needles.split(";")), re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_ROLE = r"(?:the |my |this |your )?(?:character|persona|role)['’]?s? (?:setting|profile|description|definition)"
_WORK = r"(?:rewrit\w+|revised|refined|response|reply|memor\w+|schedule|sub-schedule|itinerary|overview)"

# Each pattern with its lower-case needles, one of which must be in the text: needles are cheap.
# Ordinary talk must not match: "I'm an AI", "out of character for you", "let me put it another way".
_MARKERS = (
    _marker("设定", r"(?:角色|人物|人设)设定(?:不符|冲突|不一致|不匹配)|不符合.{0,4}(?:角色|人物|人设)的?设定"),
    _marker("输入", r"检测到.{0,4}输入|(?:这个|该|此|当前)输入(?:内容)?(?:与|和|不)"),
    _marker("重新生成", r"重新生成(?:回复|内容|答案|一[次条遍])?[。：:！]?$"),
    _marker("写;润色", r"^(?:改写|重写|润色)(?:后|结果|记忆|后的记忆|版本|如下)?\s*[:：]"),
    _marker("原意;字;人称", r"[(（][^）)]{0,40}(?:保持原意|第一人称|\d+\s*个?汉?字)[^）)]{0,40}[）)]"),
    _marker(
        "根据;按照", r"(?:根据|按照)(?:您|你)?(?:所?提供的|给出的|上述|以上)(?:角色|人物|人设|设定|记忆|对话|要求|提示)"
    ),
    _marker("系统提示;输出格式", r"系统提示词?[:：里中]|系统提示词|输出格式"),
    _marker("：;:", r"\A\s*(?:用户|助手|系统|伴侣|回复|输出|assistant|user|system|companion|output|response)\s*[:：]"),
    _marker(
        "character;persona;role",
        r"(?:\bnot|n['’]t) (?:match|fit|comply with|conform to|align with|consistent with|in line with) "
        rf"{_ROLE}|(?:inconsistent|conflicts?) with {_ROLE}",
    ),
    _marker("rewr;revis;refin", r"^(?:rewritten|rewrite|revised|refined)(?: memory| version| text)?\s*:"),
    _marker(
        "here",
        r"^(?:sure[,!.]? )?here(?: is|['’]s| are) (?:the|my|a|your) (?:[\w-]+ ){0,3}?"
        rf"{_WORK}[^\n:]{{0,40}}:",
    ),
    _marker(
        "words;characters;person;meaning",
        r"\([^)]{0,60}(?:original meaning|first[- ]person|\d+ (?:words|characters))[^)]{0,60}\)",
    ),
    _marker(
        "based on;according to",
        r"(?:based on|according to) (?:the|your) (?:provided|given|above) "
        r"(?:persona|prompt|instructions?|character|memor\w+|conversation|dialogue|history)",
    ),
    _marker("system prompt;my instructions", r"system prompt|my instructions (?:say|state|tell|require)"),
    _marker("{", r"\{+\s*[a-z]+(?:_[a-z]+)*\s*\}+"),
    _marker("<|;[inst;[/inst;<<sys", r"<\|[a-z_]+\|>|\[/?INST\]|<<SYS>>"),
)

"""Split a model's text into its answer and the reasoning between known marks (`reasoning_marks`).

Servers that know a model's marks deliver its reasoning apart; others leave it in the text.
A tag counts only where a model writes it, not where a reply speaks about it: in quotation marks or backticks it is
text, and so is a tag of letters within a line. What fine-tuned models write as plain letters is reasoning only where
it opens the reply and words follow it: a poem between `<thought>` and `</thought>` is the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from h2htalk.data.replies.reasoning_marks import (
    HEADING,
    TAG_ATTRIBUTES,
    TAG_NAMES,
    THOUGHT_ZH,
    WRAPPER_AFTER_REASONING,
    WRAPPERS,
    ReasoningMark,
    load_marks,
)


@dataclass(frozen=True, slots=True)
class _Tag:
    """A mark in a text; `mentioned`: in quotation marks, or within a sentence that speaks about it."""

    start: int
    end: int
    closes: bool
    mentioned: bool = False


_MOST_BLOCKS = 4  # blocks of different marks in one reply: `<thinking>`, then `<reflection>`
_ROLE = "<|assistant|>"  # of a chat template, before the mark of reasoning
_OPENS_REPLY = rf"\A\s*(?:{re.escape(_ROLE)}\s*)?"
# Ends of an answer, which count after reasoning only.
_ENDS = re.compile(
    r"\s*(?:<\|(?:end|im_end|return)\|>|\[END FINAL RESPONSE\]|</CONCLUSION>|\[\[ ## completed ## \]\])\s*\Z"
)
_LONE_CLOSE = re.compile(
    rf"</(?P<tag>{TAG_NAMES})\s*>[ \t]*\n|(?-i:\[BEGIN FINAL RESPONSE\])[ \t]*\n?",
    re.IGNORECASE,
)

# Also as a proxy escapes it for a page, or with the full-width brackets of Chinese text.
_THINK = re.compile(
    rf"(?:<|&lt;|＜)\s*(?P<closes>/?)\s*think(?:ing)?(?:{TAG_ATTRIBUTES}|\s*(?P<ends>/))\s*(?:>|&gt;|＞)",
    re.IGNORECASE,
)
_MAY_HOLD = re.compile(
    r"[<\[◁＜]|&lt;|```|\A\s*(?:#|:::|\*Thinking|/think)|\A\s*analysis|\A\s*Thinking\.\.\.|my thought process:"
    rf"|(?i:\A\s*(?:think\s*\n|\*{{0,2}}{HEADING}))|\A\s*(?:【|\*\*)?{THOUGHT_ZH}"
)
# Around a mark that a sentence speaks about: `models write [THINK] first`.
_BEFORE_MENTION = re.compile(r"[\w,，、][ \t]\Z")
# After a closing mark whose opening one was only mentioned: nothing, or the same sentence.
_SENTENCE_GOES_ON = re.compile(r"[ \t]|[.,;:!?，。；：！？)）]|\s*\Z")
_AFTER_MENTION = re.compile(r"[ \t]+[a-z\u4e00-\u9fff]|[ \t]*[.,;:!?，。；：！？)）]")
# Marks that make a tag between them plain text. Straight quotation marks do so for an opening tag only:
# reasoning often ends with a draft of the reply in quotes, which a closing tag follows at once.
_QUOTES = frozenset(("``", "“”", "‘’", "「」", "『』"))
_QUOTES_AROUND_OPEN = _QUOTES | {'""', "''"}
# OpenAI's harmony, with its special tokens or without some.
_CHANNEL = re.compile(
    r"(?:<\|start\|>\s*(?:assistant\s*)?)?<\|channel\|>\s*(?P<name>analysis|commentary|final)(?![a-z])"
    r"(?:\s+to=\S+|\s*<\|constrain\|>\s*\w+|\s+code\b|\s+json\b)*\s*(?:<\|message\|>)?"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call|start)\|>(?:assistant)?|<\|message\|>")
# The same where the server left out the special tokens: `analysisThe user ...assistantfinalI hear you`.
_BARE_FINAL = re.compile(r"assistant\s*final(?:json)?\s*(?=\S)|assistant\s*final\s*$")
_BARE_START = re.compile(r"\s*analysis(?=[A-Z\d\"“'(\u4e00-\u9fff])")


def split_reasoning(text: str, opened: bool = False) -> tuple[str, str | None]:
    """Split a text into the answer and the reasoning between known marks; None where there is none.

    A block goes from its mark to the first closing one; blocks do not nest, as reasoning may mention the mark. Some
    chat templates open the block in the prompt: everything before a lone closing mark is reasoning too, and where the
    prompt `opened` one, all is without a mark. A block that was cut off before it closed leaves no answer after it.
    """
    if not opened and not _MAY_HOLD.search(text):
        return text.strip(), None
    answer = text
    thoughts: list[str] = []
    for _ in range(_MOST_BLOCKS):
        answer, new_thoughts = _split_once(answer, opened and not thoughts, bool(thoughts))
        if not new_thoughts:
            break
        thoughts += new_thoughts
    if not thoughts:
        return _unwrapped(answer.strip(), WRAPPERS), None
    answer = _ENDS.sub("", answer.strip().removeprefix(_ROLE)).strip()
    answer = _unwrapped(answer, (*WRAPPERS, WRAPPER_AFTER_REASONING))
    return answer, "\n\n".join(filter(None, thoughts))


def strip_reasoning(text: str) -> str:
    """Remove reasoning between known marks, marks around the answer, and outer white space."""
    return split_reasoning(text)[0]


def split_between(text: str, opens: str, closes: str) -> tuple[str, str | None]:
    """Split a text at marks that the user named. If `opens` is empty, the reply begins with reasoning.

    As `split_reasoning`, but a mark counts wherever it stands. A text without marks has no reasoning.
    """
    pattern = f"{re.escape(opens)}|{re.escape(closes)}" if opens else re.escape(closes)
    tags = []
    for mark in re.finditer(pattern, text):
        tag = _Tag(start=mark.start(), end=mark.end(), closes=mark[0] == closes)
        tags.append(tag)
    return _divide(text, tags, opened=False)


# --- One form after the other -------------------------------------------------------------------------------------


def _split_once(text: str, opened: bool, reasoned: bool) -> tuple[str, list[str]]:
    """Split a text at the marks of each form; returns the remaining text and the blocks of reasoning.

    `reasoned` says that earlier blocks of the reply were reasoning.
    """
    thoughts: list[str] = []
    answer, thought = _split_harmony(text)
    if thought is not None:
        thoughts.append(thought)
    answer, thought = _split_marks(answer, reasoned or bool(thoughts))
    if thought is not None:
        thoughts.append(thought)
    answer, thought = _split_think(answer, opened and not thoughts, reasoned or bool(thoughts))
    if thought is not None:
        thoughts.append(thought)
    return answer, thoughts


def _split_harmony(text: str) -> tuple[str, str | None]:
    """Split a text in OpenAI's harmony: the channel `final` is the answer, else what `commentary` tells the user."""
    marks = list(_CHANNEL.finditer(text)) if "<|channel|>" in text else []
    if not marks:
        return _split_bare_harmony(text)
    if _is_quoted(text, marks[0].start(), marks[0].end(), _QUOTES_AROUND_OPEN):
        return text, None
    # What stands before the first mark continues the channel that the prompt opened.
    thoughts = [_CHANNEL_END.sub("", text[: marks[0].start()])]
    remarks: list[str] = []
    finals: list[str] = []
    next_starts = [mark.start() for mark in marks[1:]]
    for mark, end in zip(marks, [*next_starts, len(text)], strict=True):
        content = _CHANNEL_END.split(text[mark.end() : end], maxsplit=1)[0]
        if mark["name"] == "final":
            finals.append(content)
        elif mark["name"] == "commentary" and " to=" not in mark[0]:
            remarks.append(content)
        else:
            thoughts.append(content)
    answer = "".join(finals).strip()
    if answer:
        thoughts += remarks
    else:
        answer = "\n\n".join(remark.strip() for remark in remarks).strip()
    stripped = [thought.strip() for thought in thoughts]
    return answer, "\n\n".join(filter(None, stripped))


def _split_bare_harmony(text: str) -> tuple[str, str | None]:
    """Split a text in harmony whose special tokens the server left out."""
    if not text.lstrip().startswith("analysis"):
        return text, None
    finals = list(_BARE_FINAL.finditer(text))
    if finals:
        thought = text[: finals[-1].start()]
        answer = text[finals[-1].end() :].strip()
    elif _BARE_START.match(text):
        thought = text
        answer = ""
    else:
        return text, None
    return answer, thought.lstrip().removeprefix("analysis").strip()


def _split_marks(text: str, reasoned: bool) -> tuple[str, str | None]:
    """Split a text at the first of the known marks that it holds."""
    for mark in load_marks("special"):
        tags = _find_tags(text, re.compile(f"(?:{mark.opens})|(?P<closes>{mark.closes})"))
        answer, thought = _divide(text, tags, opened=False)
        if thought is not None:
            return answer, thought
    for mark in load_marks("written"):
        answer, thought = _split_written(text, mark, reasoned)
        if thought is not None:
            return answer, thought
    return _split_lone_close(text)


def _split_lone_close(text: str) -> tuple[str, str | None]:
    """Split at a closing tag of letters that ends a line, where the prompt opened the block."""
    close = _LONE_CLOSE.search(text)
    if close is None:
        return text, None
    if close["tag"] and re.search(rf"(?i)<{re.escape(close['tag'])}\b", text):
        return text, None
    answer = text[close.end() :].strip()
    if not answer:
        return text, None
    return answer, text[: close.start()].strip()


def _split_written(text: str, mark: ReasoningMark, reasoned: bool) -> tuple[str, str | None]:
    """Split at a mark of plain letters, which may also be what a reply speaks about, or stand around a poem.

    It opens the reply, and words follow the block. After other reasoning it begins a line.
    """
    start = rf"(?:{_OPENS_REPLY}|\n[ \t]*)" if reasoned else _OPENS_REPLY
    opening = re.search(rf"(?i){start}(?:{mark.opens})", text)
    if opening is None:
        return text, None
    before = text[: opening.start()].strip()
    tag = opening.groupdict().get("tag")
    closes = rf"</{re.escape(tag)}\s*>" if tag else mark.closes
    closing = re.compile(f"(?i){closes}").search(text, opening.end())
    if closing is None:
        begins_reply = tag is not None and not before
        if begins_reply and re.match(r"\n|[^\s<]", text[opening.end() :]):
            return "", text[opening.end() :].strip()  # it was cut before it closed
        return text, None
    thought = text[opening.end() : closing.start()]
    after = text[closing.end() :]
    if not _is_reasoning(thought) or not after.strip():
        return text, None
    return f"{before}\n{after}".strip(), thought.strip()


def _is_reasoning(inner: str) -> bool:
    """Whether what stands between two tags is reasoning, and not the `and` of a sentence about them."""
    if not inner.strip():
        return True
    return re.match(r"[ \t]+[a-z]{1,9}[ \t]*$|[ \t]*[,/|&、和与及][ \t]*$", inner) is None


def _split_think(text: str, opened: bool, reasoned: bool) -> tuple[str, str | None]:
    """Split at `<think>` and `<thinking>`, the marks of most models.

    Where they do not open the reply, words before them in their line may speak about them.
    """
    tags = _find_tags(text, _THINK)
    if not (opened or reasoned):
        opens_reply = any(not tag.closes and not text[: tag.start].strip() for tag in tags)
        if not opens_reply:
            tags = [_mentioned_within_line(text, tag) for tag in tags]
        elif len(tags) == 2 and not tags[1].closes and text[tags[1].start - 1] == "\n":
            # A small model's closing mark without its slash.
            tags[1] = replace(tags[1], closes=True)
    return _divide(text, tags, opened)


def _mentioned_within_line(text: str, tag: _Tag) -> _Tag:
    """An opening tag as one that is only mentioned, where words stand before it in its line, apart from it."""
    before = text[: tag.start].rpartition("\n")[2].strip()
    attached = re.search(r"[\w.!?。！？]\Z", text[max(0, tag.start - 1) : tag.start]) is not None
    if tag.closes or attached or before in ("", _ROLE):
        return tag
    return replace(tag, mentioned=True)


def _find_tags(text: str, pattern: re.Pattern[str]) -> list[_Tag]:
    """The marks that a pattern finds, without closing ones in quotation marks."""
    tags: list[_Tag] = []
    for match in pattern.finditer(text):
        start = match.start()
        end = match.end()
        closes = bool(match["closes"] or match.groupdict().get("ends"))
        if closes:
            if _is_quoted(text, start, end, _QUOTES):
                continue
            mentioned = _follows_words(text, start) and _AFTER_MENTION.match(text, end) is not None
        else:
            quoted = _is_quoted(text, start, end, _QUOTES_AROUND_OPEN)
            mentioned = quoted or _follows_words(text, start)
        tags.append(_Tag(start=start, end=end, closes=closes, mentioned=mentioned))
    return tags


def _follows_words(text: str, start: int) -> bool:
    return _BEFORE_MENTION.search(text[max(0, start - 2) : start]) is not None


def _divide(text: str, tags: Sequence[_Tag], opened: bool) -> tuple[str, str | None]:
    """Divide a text at marks. `opened` says that the prompt opened a block."""
    answer = ""
    thought = ""
    start = 0
    inside = opened
    has_block = opened
    mention: _Tag | None = None  # the opening mark before, where a sentence speaks about it
    for tag in tags:
        if inside and not tag.closes:
            continue
        if tag.mentioned and not inside:
            if not tag.closes:
                mention = tag
            continue
        if tag.closes and not inside and _closes_mention(text, mention, tag):
            mention = None
            continue
        segment = text[start : tag.start]
        if not tag.closes:
            answer += segment
        elif inside:
            thought += segment
        else:  # the prompt opened it
            thought += answer + segment
            answer = ""
        start = tag.end
        inside = not tag.closes
        has_block = True
    if inside:
        thought += text[start:]
    else:
        answer += text[start:]
    return answer.strip(), thought.strip() if has_block else None


def _closes_mention(text: str, mention: _Tag | None, tag: _Tag) -> bool:
    """Whether a closing mark belongs to an opening one that a sentence speaks about: `<think>...</think> around it`."""
    if mention is None:
        return False
    within_line = "\n" not in text[mention.end : tag.start]
    return within_line and _SENTENCE_GOES_ON.match(text, tag.end) is not None


def _unwrapped(answer: str, wrappers: Sequence[tuple[str, str]]) -> str:
    """Take off the marks around an answer; also one that was cut before its closing mark."""
    for opens, closes in wrappers:
        match = re.match(rf"(?is){opens}(?P<inner>.*?)(?:{closes}(?P<after>.*))?\Z", answer)
        if match is not None:
            inner = match["inner"].strip()
            after = (match["after"] or "").strip()
            return "\n".join(filter(None, (inner, after)))
    return answer


def _is_quoted(text: str, start: int, end: int, quotes: frozenset[str]) -> bool:
    return text[max(0, start - 1) : start] + text[end : end + 1] in quotes

"""The message of a chat completion as plain text: content in parts, reasoning among them, and marks of reasoning.

Most servers send `content` as one text. Mistral's, and gateways to other APIs, send a list of parts: texts are joined,
reasoning and refusals are told apart. A part that cannot be read as text (a picture, a sound) is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.replies.reasoning import split_between

_TEXTS = frozenset({"text", "output_text", "input_text", "message"})
_REASONING = frozenset(
    """
    thinking think reasoning reasoning_text reasoning_content reasoningcontent reasoningtext
    summary_text thought reasoning.text reasoning.summary
    """.split()  # noqa: SIM905
)
# Parts that say nothing to the user: calls of tools, what they returned, and reasoning that is encrypted.
_SILENT = frozenset(
    """
    tool_use tool_call tool_calls function_call tool_result redacted_thinking reference
    tool_reference server_tool_use reasoning.encrypted redacted_reasoning
    """.split()  # noqa: SIM905
)
_DEEPEST = 8


@dataclass(slots=True)
class _Texts:
    """The texts of a message's parts."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def plain_message(message: Any, marks: tuple[str, str] | None = None) -> Any:
    """Return a message whose `content`, `reasoning_content` and `refusal` are texts.

    Args:
        message: message of a choice; a value that is no object is returned unchanged, for the reader's own error.
        marks: the marks of reasoning that the user named (`--engine-option think=OPEN,CLOSE`).

    Raises:
        ValueError: a part that is no text.
    """
    if not isinstance(message, Mapping):
        return message
    plain = dict(message)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    content = message.get("content")
    texts = _Texts()
    if isinstance(reasoning, list | Mapping):
        _read(reasoning, texts, True, 0)
        reasoning = ""
    if isinstance(content, list | Mapping):
        _read(content, texts, False, 0)
        content = "".join(texts.content)
    if isinstance(content, str) and marks is not None:
        content, thought = split_between(content, *marks)
        texts.reasoning.append(thought or "")
    if isinstance(reasoning, str):
        texts.reasoning.insert(0, reasoning)
        reasoning = None
    thoughts = [text for text in texts.reasoning if text]
    if thoughts:
        reasoning = "\n\n".join(thoughts)
    plain.pop("reasoning", None)
    plain["reasoning_content"] = reasoning
    if "content" in message:
        plain["content"] = content
    if texts.refusals and not message.get("refusal"):
        plain["refusal"] = "".join(texts.refusals)
    return plain


def _read(part: Any, texts: _Texts, thinks: bool, depth: int) -> None:
    """Read a part, or a list of them; `thinks`: it stands within reasoning."""
    if depth > _DEEPEST:
        raise ValueError("parts within parts")
    if isinstance(part, list):
        for inner in part:
            _read(inner, texts, thinks, depth + 1)
    elif isinstance(part, str):
        (texts.reasoning if thinks else texts.content).append(part)
    elif isinstance(part, Mapping):
        _read_object(part, texts, thinks, depth)
    elif part is not None:
        raise ValueError("a part is no text")


def _read_object(part: Mapping[str, Any], texts: _Texts, thinks: bool, depth: int) -> None:
    kind = str(part.get("type", "text")).lower()
    if kind in _SILENT:
        return
    if "type" not in part:
        inner_names = [name for name in part if str(name).lower() in _REASONING]
        if (
            inner_names and "text" not in part
        ):  # Amazon's: `{"reasoningContent": {"reasoningText": {"text": ...}}}`
            _read(part[inner_names[0]], texts, True, depth + 1)
            return
        thinks = thinks or part.get("thought") is True  # Google's
    if kind == "refusal":
        inner = part.get("refusal", part.get("text"))
        if not isinstance(inner, str):
            raise ValueError("a refusal is no text")
        texts.refusals.append(inner)
    elif kind in _REASONING:
        names = (kind, "thinking", "reasoning", "summary", "text", "content", "signature")
        inner = _inner(part, names)
        # Reasoning that the provider keeps to itself has a signature alone.
        if inner is not part.get("signature"):
            _read(inner, texts, True, depth + 1)
    elif kind in _TEXTS:
        _read(_inner(part, ("text", "content", "value")), texts, thinks, depth + 1)
    else:
        raise ValueError(f"a part of type {kind!r}")


def _inner(part: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """What a part holds, under the first of some names; text may lie in an object of its own (`{"value": ...}`).

    None where a name is there and has no value: a part that says nothing.
    """
    for name in names:
        inner = part.get(name)
        if inner is not None:
            return inner["value"] if isinstance(inner, Mapping) and "value" in inner else inner
    if any(name in part for name in names):
        return None
    raise ValueError("a part without text")

"""The model behind the provider double: what it was asked, what it writes, how many tokens that is, what it caches.

Both providers' wires (`provider_openai`, `provider_anthropic`) read a body into an `Asked` and put a `Draft` into
their own JSON. Nothing here knows HTTP.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most."
REFUSAL = "I cannot help with that."
THOUGHT = "The person is tired. I will be brief and kind."

BYTES_PER_TOKEN = 3  # of UTF-8: near enough to a tokenizer for English and Chinese alike
TOKENS_AROUND_MESSAGE = 3
CACHE_FROM = 1024  # tokens: shorter prefixes are never cached, by either provider
CACHE_STEP = 128  # tokens: OpenAI counts what it read in these
LIFETIMES = {"5m": 300.0, "1h": 3600.0}  # seconds


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of the prompt; `ttl`: a cache breakpoint stands behind it, for so long."""

    text: str
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request. `item`: its last user message, by which tests know it."""

    provider: str
    model: str
    item: str
    pieces: tuple[Piece, ...]
    max_tokens: int
    samples: int = 1
    schema: dict[str, Any] | None = None
    thinks: bool = False
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a call is billed for; the four kinds of input exclude one another. `reasoning` is part of `output`."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Draft:
    """What the model wrote: one text a sample. `finish`: stop, length, refusal (in words) or filtered (without)."""

    texts: tuple[str, ...]
    finish: str
    thought: str
    output_tokens: int
    reasoning_tokens: int


@dataclass(slots=True)
class Model:
    """Writes replies and counts them.

    Attributes:
        reply: what it writes; each reply ends in a number of its own, so that a stored text tells its call.
        dearest: every call costs as much as it can: a token for each byte, every budget used up, nothing cached.
    """

    reply: str = REPLY
    dearest: bool = False
    written: int = 0
    caches: PromptCaches = field(default_factory=lambda: PromptCaches())

    def count(self, text: str) -> int:
        size = len(text.encode())
        return size if self.dearest else math.ceil(size / BYTES_PER_TOKEN)

    def counts(self, asked: Asked) -> list[int]:
        """Tokens of each text of a prompt."""
        return [self.count(piece.text) + TOKENS_AROUND_MESSAGE for piece in asked.pieces]

    def write(self, asked: Asked, fault: str | None) -> tuple[Draft, Tokens]:
        """The reply to a request, and what it costs; `fault`: one that shows in the reply itself."""
        draft = self._draft(asked, fault)
        counts = self.counts(asked)
        total = sum(counts) + (self.count(json.dumps(asked.schema)) if asked.schema else 0)
        read = five = hour = 0
        if not self.dearest:
            read, five, hour = self.caches.look(asked, counts)
        tokens = Tokens(total - read - five - hour, read, five, hour, draft.output_tokens, draft.reasoning_tokens)
        return draft, tokens

    def _draft(self, asked: Asked, fault: str | None) -> Draft:
        reasoning = min(self.count(THOUGHT), asked.max_tokens) if asked.thinks else 0
        left = asked.max_tokens - reasoning
        texts, finish = [], "stop"
        for _ in range(asked.samples):
            self.written += 1
            text = self._text(asked, fault)
            if fault in ("refusal", "filtered"):
                finish = fault
            elif fault == "truncated" or self.count(text) > left:
                text, finish = text[: max(1, len(text) // 2)] if left else "", "length"
            texts.append(text)
        full = finish == "length" or self.dearest
        written = asked.max_tokens * asked.samples
        if not full:
            written = sum(map(self.count, texts)) + reasoning * asked.samples
        return Draft(tuple(texts), finish, THOUGHT if asked.thinks else "", written, reasoning * asked.samples)

    def _text(self, asked: Asked, fault: str | None) -> str:
        if fault in ("refusal", "filtered"):
            return REFUSAL if fault == "refusal" else ""
        if asked.schema is None:
            return f"{self.reply} ({self.written})"
        text = json.dumps(fill(asked.schema, asked.schema, out_of_range=fault == "out_of_range"))
        return text[: len(text) // 2] if fault == "malformed_form" else text


def fill(schema: dict[str, Any], root: dict[str, Any], out_of_range: bool = False) -> Any:
    """A value of that JSON schema; with `out_of_range` every number is far beyond any rating scale."""
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root, out_of_range)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], root, out_of_range)
    match schema.get("type"):
        case "object":
            return {name: fill(part, root, out_of_range) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [fill(schema["items"], root, out_of_range)]
        case "integer" | "number":
            return 1_000_003 if out_of_range else schema.get("minimum", 5)
        case "boolean":
            return True
        case "null":
            return None
    return "as the person said"


class PromptCaches:
    """Which prefixes can be read: those of calls whose reply was finished, until their lifetime is over."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._prompts: dict[tuple[str, str], list[str]] = defaultdict(list)

    def look(self, asked: Asked, counts: list[int]) -> tuple[int, int, int]:
        """Tokens read from the cache, written there for five minutes, and for an hour."""
        if asked.provider == "openai":
            return self._common(asked, counts), 0, 0
        read, written, upto = 0, {"5m": 0, "1h": 0}, 0
        for number, piece in enumerate(asked.pieces):
            upto += counts[number]
            if piece.ttl is None or upto < CACHE_FROM:
                continue
            if self._until.get(_prefix(asked, number), 0.0) > time.monotonic():
                read, written = upto, {"5m": 0, "1h": 0}
            else:
                written[piece.ttl] += upto - read - sum(written.values())
        return read, written["5m"], written["1h"]

    def finish(self, asked: Asked) -> None:
        """A reply was finished: from now on its prefixes can be read."""
        if asked.provider == "openai":
            prompts = self._prompts[asked.model, asked.cache_key]
            prompts.append("".join(piece.text for piece in asked.pieces))
            del prompts[:-8]
        for number, piece in enumerate(asked.pieces):
            if piece.ttl is not None:
                self._until[_prefix(asked, number)] = time.monotonic() + LIFETIMES[piece.ttl]

    def _common(self, asked: Asked, counts: list[int]) -> int:
        prompt = "".join(piece.text for piece in asked.pieces)
        before = self._prompts[asked.model, asked.cache_key]
        longest = max((len(os.path.commonprefix([prompt, text])) for text in before), default=0)  # noqa: RUF071 - characters are meant
        tokens = len(prompt[:longest].encode()) // BYTES_PER_TOKEN
        return min(tokens, sum(counts)) // CACHE_STEP * CACHE_STEP if tokens >= CACHE_FROM else 0


def _prefix(asked: Asked, number: int) -> str:
    text = "\0".join(piece.text for piece in asked.pieces[: number + 1])
    return f"{asked.model} {hashlib.sha256(text.encode()).hexdigest()}"

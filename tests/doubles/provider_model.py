"""The imitated providers: how they read requests, their model, its tokens and caches, the JSON of their answers."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Made up. It holds what base64, URLs and JSON each write in another way, so that a search can find every spelling.
KEY = "sk-made-up/4711+For=Tests&only~%x"
MODELS = {"openai": ("gpt-test",), "anthropic": ("claude-test",)}
ID_HEADER = {"openai": "x-request-id", "anthropic": "request-id"}
REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most."
REFUSAL = "I cannot help with that."
BYTES_PER_TOKEN = 3  # of UTF-8: near enough to a tokenizer for English and Chinese alike
TOKENS_AROUND_MESSAGE = 3
CACHES: dict[str | None, tuple[str, ...]] = {None: (), "5m": ("cache_write",), "1h": ("cache_write_1h",)}


class Refused(Exception):
    """A request that the API refuses, free of charge."""

    def __init__(
        self, status: int, kind: str, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.code, self.headers = status, kind, message, code, dict(headers or {})


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request. `item`: its last user message. `texts`: of the prompt. `lifetime`: of its cache, if any."""

    provider: str
    model: str
    item: str
    texts: list[str]
    max_tokens: int
    samples: int = 1
    schema: dict[str, Any] | None = None
    lifetime: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a call is billed for; the four kinds of input exclude one another."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0


@dataclass(slots=True)
class Model:
    """Writes replies, each with a number of its own, and counts them: a quarter of each prompt is read from a cache.

    `dearest`: every call costs as much as it can: a token for each byte, every budget used up, nothing cached.
    `numbered`: else a hash of the prompt stands for the number, and equal requests get equal replies.
    """

    reply: str = REPLY
    dearest: bool = False
    written: int = 0
    numbered: bool = True

    def count(self, text: str) -> int:
        size = len(text.encode())
        return size if self.dearest else math.ceil(size / BYTES_PER_TOKEN)

    def write(self, asked: Asked, fault: str | None) -> tuple[list[str], str, Tokens]:
        """Return the texts of a reply, how it ended, and what it costs; `fault`: one that shows in the reply itself."""
        texts, finish = [], "stop"
        for _ in range(asked.samples):
            self.written += 1
            text = self._text(asked, fault)
            if fault == "refusal":
                finish = fault
            elif fault == "truncated" or self.count(text) > asked.max_tokens:
                text, finish = text[: len(text) // 2], "length"
            texts.append(text)
        output = sum(map(self.count, texts))
        if finish == "length" or self.dearest:
            output = asked.max_tokens * asked.samples
        pieces = [*asked.texts, *([json.dumps(asked.schema)] if asked.schema else [])]
        total = sum(self.count(text) + TOKENS_AROUND_MESSAGE for text in pieces)
        cached = {} if self.dearest else dict.fromkeys(("cache_read", *CACHES[asked.lifetime]), total // 4)
        return texts, finish, Tokens(total - sum(cached.values()), output=output, **cached)

    def _text(self, asked: Asked, fault: str | None) -> str:
        if fault == "refusal":
            return REFUSAL
        if asked.schema is None:
            mark = self.written if self.numbered else f"{zlib.crc32(''.join(asked.texts).encode()):08x}"
            return f"{self.reply} ({mark})"
        return json.dumps(fill(asked.schema, asked.schema))


def fill(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value of that JSON schema."""
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], root)
    match schema.get("type"):
        case "object":
            return {name: fill(part, root) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [fill(schema["items"], root)]
        case "integer" | "number":
            return schema.get("minimum", 5)
        case "boolean":
            return True
        case "null":
            return None
    return "as the person said"


def read(provider: str, body: Any) -> Asked:
    """The request in a body; raises Refused as the API does."""
    model, messages, system = body["model"], body["messages"], body.get("system") or []
    if model not in MODELS[provider]:
        raise Refused(404, "not_found_error", f"model: {model}", "model_not_found")
    texts = [block["text"] for block in system] + [message["content"] for message in messages]
    if provider == "anthropic":
        lifetime = next((block["cache_control"]["ttl"] for block in system if "cache_control" in block), None)
        schema = body["output_config"]["format"]["schema"] if "output_config" in body else None
        return Asked(provider, model, texts[-1], texts, body["max_tokens"], 1, schema, lifetime)
    schema = body["response_format"]["json_schema"]["schema"] if "response_format" in body else None
    item = [message["content"] for message in messages if message["role"] == "user"][-1]
    return Asked(provider, model, item, texts, body["max_completion_tokens"], body.get("n") or 1, schema)


def reply(asked: Asked, texts: list[str], finish: str, tokens: Tokens, request_id: str, usage: bool) -> dict[str, Any]:
    """The JSON of a reply."""
    if asked.provider == "openai":
        refused = finish == "refusal"
        says = [{"content": None, "refusal": text} if refused else {"content": text} for text in texts]
        ended = {"finish_reason": "stop" if refused else finish}
        choices = [{"index": n, "message": {"role": "assistant", **said}, **ended} for n, said in enumerate(says)]
        made = {"id": f"chatcmpl-{request_id}", "model": asked.model, "system_fingerprint": "fp_test"}
        made["choices"] = choices
        counts: dict[str, Any] = {
            "prompt_tokens": tokens.input + tokens.cache_read,
            "completion_tokens": tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        }
    else:
        content: list[dict[str, Any]] = [{"type": "text", "text": texts[0]}] if texts[0] else []
        stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
        made = {"id": f"msg_{request_id}", "type": "message", "role": "assistant", "model": asked.model}
        made |= {"content": content, "stop_reason": stop}
        counts = {
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": tokens.cache_write,
                "ephemeral_1h_input_tokens": tokens.cache_write_1h,
            },
        }
    return made | ({"usage": counts} if usage else {})


def error(provider: str, refused: Refused, request_id: str) -> dict[str, Any]:
    """The JSON of an error, live or in a batch's result."""
    words = {"type": refused.kind, "message": refused.message}
    if provider == "openai":
        return {"error": words | {"code": refused.code}}
    return {"type": "error", "error": words, "request_id": request_id}

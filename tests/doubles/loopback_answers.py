"""What the loopback server says: chat completions, and an answer for each fault that is spoken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REPLY = "That sounds like a long day. I am here, so tell me what stayed with you the most?"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. `body` may be text, bytes or anything that JSON can hold."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds

    def encode(self) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {self.status} -", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def completion(text: str | None = REPLY, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """The JSON of a chat completion; `message` adds fields such as `refusal` or `reasoning_content`."""
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 24, "total_tokens": 144},
    }


def message(text: str = REPLY, **changed: Any) -> dict[str, Any]:
    """The JSON of an answer of Anthropic's messages API."""
    return {
        "id": "msg_loopback",
        "type": "message",
        "role": "assistant",
        "model": "loopback",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 120, "output_tokens": 24},
    } | changed


def _refuse(status: int, message: str, code: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer({"error": {"message": message, "code": code}}, status, named)


# What the server says for each fault. The others (hang, drop, cut, drip, giant) are things it does.
SPOKEN_FAULTS: dict[str, Answer] = {
    "http_500": _refuse(500, "the engine fell over", "internal_error"),
    "rate_limited": _refuse(429, "slow down", "rate_limit_exceeded", retry_after="1"),
    "malformed": Answer('{"choices": [{"message": {"content": "cut o'),
    "unauthorized": _refuse(401, "Incorrect API key provided", "invalid_api_key"),
    "unknown_model": _refuse(404, "The model does not exist", "model_not_found"),
    "context_length": _refuse(400, "This model's maximum context length is 2048 tokens", "context_length_exceeded"),
}
FAULTS = (*SPOKEN_FAULTS, "hang", "drop", "cut", "drip", "giant")

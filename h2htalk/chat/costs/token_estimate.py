"""Rough counts of tokens, for estimates before a model's tokenizer is known."""

from __future__ import annotations

from h2htalk.chat.protocol import Request


def prompt_tokens(request: Request) -> int:
    """Tokens of a request's messages."""
    return sum(rough_tokens(message.content) for message in request.messages)


def rough_tokens(text: str) -> int:
    """Four letters or one and a half Chinese characters a token."""
    ascii_letters = sum(map(str.isascii, text))
    return round(ascii_letters / 4 + (len(text) - ascii_letters) / 1.5)

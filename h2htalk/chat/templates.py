"""A tokenizer's chat template: messages in, prompt tokens out, the system text folded in where it must be."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import Any

from h2htalk.chat.base import Message
from h2htalk.errors import ConfigError

_PROBE = "h2htalk-system-probe"


class TemplateRefusal(Exception):
    """The template cannot render these messages (roles that do not alternate, say)."""


class ChatTemplate:
    """The chat template that came with a tokenizer.

    Raises:
        ConfigError: there is none, or it cannot render a single user message. `where` opens the message.
    """

    def __init__(self, tokenizer: Any, where: str) -> None:
        self._tokenizer = tokenizer
        try:
            self._text = str(tokenizer.get_chat_template())
        except ValueError:
            raise ConfigError(
                f"{where}: its tokenizer has no chat template, so it is no chat model; choose its instruct "
                "variant, or put the template into the folder as chat_template.jinja"
            ) from None
        try:
            self._render([Message("user", _PROBE)])
        except TemplateRefusal as error:
            raise ConfigError(f"{where}: its chat template cannot render a user message: {error}") from error
        self.folds_system = not self._takes_system()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the template's text."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def tokens(self, messages: Sequence[Message]) -> array[int]:
        """The prompt, open for the assistant's turn, as token ids.

        Raises:
            TemplateRefusal: the template cannot render the messages.
        """
        text = self._render(fold_system(messages) if self.folds_system else messages)
        # The template writes every special token itself; a second begin-of-text would only confuse the model.
        return array("i", self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of an answer, without special tokens, exactly as the model wrote it."""
        return str(
            self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    def _takes_system(self) -> bool:
        """Whether a system message arrives: some templates refuse it, some drop it without a word."""
        try:
            return _PROBE in self._render([Message("system", _PROBE), Message("user", "Hello")])
        except TemplateRefusal:
            return False

    def _render(self, messages: Sequence[Message]) -> str:
        from jinja2 import TemplateError

        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return str(self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        except (TemplateError, TypeError, ValueError) as error:
            raise TemplateRefusal(" ".join(str(error).split())) from error


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with the system text put at the head of the first user message.

    A conversation that the assistant opens gets a user message that holds the system text alone.
    """
    system = "\n\n".join(m.content for m in messages if m.role == "system" and m.content)
    turns = [m for m in messages if m.role != "system"]
    if not system:
        return turns
    if turns and turns[0].role == "user":
        return [Message("user", f"{system}\n\n{turns[0].content}"), *turns[1:]]
    return [Message("user", system), *turns]

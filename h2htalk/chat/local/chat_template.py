"""A tokenizer's chat template: messages in, prompt tokens out, the system text folded in where it must be.

Only the template opens and closes turns. A turn's mark in the text of a message (`<|im_end|>`) is read as plain
text: the prompt is cut within it, and the pieces are tokenized one by one. A prompt without such a text is one
piece, so its tokens are those that the tokenizer itself gives.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.chat.protocol import Message
from h2htalk.data.responses import split_thinking
from h2htalk.errors import ConfigError

_PROBE = "h2htalk-system-probe"
# What chat templates call the switch of their reasoning: Qwen and most others; DeepSeek and Granite.
SWITCHES = ("enable_thinking", "thinking")
_THINK_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation as token ids, open for the assistant's turn.

    `thinks`: it ends inside a think block, so that the reply begins with reasoning.
    """

    tokens: array[int]
    thinks: bool


class TemplateRefusal(Exception):
    """The template cannot render these messages (roles that do not alternate, say)."""


class MarkRefusal(Exception):
    """A turn's mark in a message cannot be told from the template's own: the template changes the text around it."""


class ChatTemplate:
    """The chat template that came with a tokenizer.

    `folds_system`: it has no system role, so the system text goes into the first user message. `switches`: it can
    be told whether to reason. `always_thinks`: it opens a think block whatever it is told.

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
        hello = [Message("user", _PROBE)]
        unthinking = self._render(hello, thinking=0)
        self.switches = self._render(hello, thinking=1) != unthinking
        self.always_thinks = _ends_thinking(unthinking)
        self._marks = _mark_heads(tokenizer, self._text)
        self._unseen = _unseen_tokens(tokenizer)
        # Shows in a rendered prompt where to cut it: no message can hold it, and the tokenizer never sees it.
        self._cut = secrets.token_hex(16)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the template's text."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def prompt(self, messages: Sequence[Message], thinking: int | None = None) -> Prompt:
        """The prompt, open for the assistant's turn, as token ids.

        Args:
            messages: the conversation.
            thinking: above 0 asks a template with a switch for reasoning, 0 for none; None tells it nothing.

        Raises:
            TemplateRefusal: the template cannot render the messages.
            MarkRefusal: a message holds a turn's mark that cannot be read as plain text.
            UnicodeEncodeError: a message holds half of a surrogate pair.
        """
        tokens = array("i")
        pieces = self._pieces(fold_system(messages) if self.folds_system else messages, thinking)
        for piece in pieces:
            piece.encode("utf-8")  # the tokenizer would say that its input has the wrong type
            # The template writes every special token itself; a second begin-of-text would only confuse the model.
            tokens.extend(self._tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"])
        return Prompt(tokens, _ends_thinking(pieces[-1]))

    def tokens(self, messages: Sequence[Message]) -> array[int]:
        """The token ids of `prompt`, with nothing said about reasoning."""
        return self.prompt(messages).tokens

    def _pieces(self, messages: Sequence[Message], thinking: int | None) -> list[str]:
        """The rendered prompt, cut within every turn's mark that a message holds."""
        text = self._render(messages, thinking)
        cut = [replace(m, content=self._marks.sub(rf"\g<0>{self._cut}", m.content)) for m in messages]
        if cut == list(messages):
            return [text]
        pieces = self._render(cut, thinking).split(self._cut)
        if "".join(pieces) != text:
            raise MarkRefusal(
                "a message holds one of the model's special tokens, and its chat template changes the text around "
                "it, so it cannot be asked as plain text; take that token out of the scenario"
            )
        return pieces

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of an answer, without special tokens, exactly as the model wrote it.

        Think tags stay where they are special tokens as well: without them reasoning would be read as the answer.
        """
        if self._unseen is None:
            return str(
                self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            )
        seen = [token for token in tokens if token not in self._unseen]
        return str(
            self._tokenizer.decode(seen, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    def _takes_system(self) -> bool:
        """Whether a system message arrives: some templates refuse it, some drop it without a word."""
        try:
            return _PROBE in self._render([Message("system", _PROBE), Message("user", "Hello")])
        except TemplateRefusal:
            return False

    def _render(self, messages: Sequence[Message], thinking: int | None = None) -> str:
        from jinja2 import TemplateError

        turns = [{"role": message.role, "content": message.content} for message in messages]
        told = {} if thinking is None else dict.fromkeys(SWITCHES, thinking > 0)
        try:
            return str(
                self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **told)
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise TemplateRefusal(" ".join(str(error).split())) from error


def read_reply(text: str, thinks: bool) -> tuple[str, str | None]:
    """The answer in a model's text, and its reasoning (None where there is none).

    A text without reasoning stays exactly as the model wrote it. `thinks`: see `Prompt`; reasoning that was cut
    off before it ended leaves an empty answer.
    """
    answer, thinking = split_thinking(text, thinks)
    return (text, None) if thinking is None else (answer, thinking)


def _ends_thinking(text: str) -> bool:
    """Whether a rendered prompt ends with an opening think tag: a block that was closed again does not count."""
    return re.search(r"<think(?:ing)?\s*>\s*$", text, re.IGNORECASE) is not None


def _unseen_tokens(tokenizer: Any) -> frozenset[int] | None:
    """The special tokens but for think tags; None where no think tag is a special token."""
    special = set(tokenizer.all_special_ids)
    special |= {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    tags = {number for number in special if _THINK_TAG.fullmatch(tokenizer.convert_ids_to_tokens(number))}
    return frozenset(special - tags) if tags else None


def _mark_heads(tokenizer: Any, template: str) -> re.Pattern[str]:
    """A pattern of the first characters of turns' marks, behind which a text must be cut.

    A mark is what the tokenizer reads as one special token. Some models declare theirs as ordinary added tokens;
    then that the template writes them tells. Words, blanks and single characters are none.
    """
    tails: dict[
        str, list[str]
    ] = {}  # by first character, or models with thousands of marks take seconds a prompt
    for token in tokenizer.added_tokens_decoder.values():
        text = token.content
        if len(text) > 1 and (token.special or (text in template and re.search(r"[^\w\s]", text))):
            tails.setdefault(text[0], []).append(re.escape(text[1:]))
    heads = (f"{re.escape(head)}(?={'|'.join(rest)})" for head, rest in tails.items())
    return re.compile("|".join(heads) or "(?!)")


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

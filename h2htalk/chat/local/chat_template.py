"""Turn messages into prompts of tokens by a chat template, for `hf:`, `vllm:` and `embedded`.

Only the template opens and closes turns. A special token in the text of a message (`<|im_end|>`) is read as plain
text: the prompt is cut within it, and the pieces are tokenized one by one. A prompt without one is a single piece,
so its tokens are those of the tokenizer.

A template is a program of whoever made the model: a child process renders it, under limits of memory and time
(`text.template_process`).
"""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

from h2htalk.chat.protocol import Message, OnDone, Outcome, Request, Sampling, reasoning_switch
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError
from h2htalk.text.jinja_templates import FAULTS
from h2htalk.text.template_process import Renderer, TemplateTooLargeError, render_apart, serve

_PROBE = "h2htalk-system-probe"
_SERVER = "h2htalk.chat.local.chat_template:serve_chat_templates"
_MOST_ADDED = 1_000_000  # characters of a prompt beside those of its messages
_MOST_GROWTH = 10  # characters for one of a message, such as an escape of JSON
_numbers = itertools.count(1)  # of templates
_THINK_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


class Prompt(NamedTuple):
    """A conversation up to the assistant's turn."""

    tokens: array[int]
    thinks: bool  # it ends inside a think block, so the reply begins with reasoning


class PromptRefusal(Exception):
    """Messages that no prompt can be made of; its arguments are the reason and the message of the `Failure`."""


class ChatTemplate:
    """The chat template that came with a tokenizer.

    Attributes:
        folds_system: it has no system role, so the system text goes into the first user message.
        switches: a variable switches its reasoning.
        always_thinks: it opens a think block even with reasoning off.

    Raises ConfigError, which begins with `where`, where there is no template, or it cannot render a single user
    message, here and later where it passes the limits of memory and time.
    """

    def __init__(self, tokenizer: Any, where: str) -> None:
        self._tokenizer = tokenizer
        self._where = where
        self._number = next(_numbers)
        try:
            text = str(tokenizer.get_chat_template())
        except ValueError:
            advice = "choose its instruct variant, or put the template into the folder as chat_template.jinja"
            raise ConfigError(
                f"{where}: no chat model, as its tokenizer has no chat template; {advice}"
            ) from None
        self._sources = {where: text}
        self._origins = {where: f"{where}: its chat template"}
        hello = [Message("user", _PROBE)]
        try:
            self._render(hello)
        except PromptRefusal as error:
            raise ConfigError(
                f"{where}: its chat template cannot render a user message: {error.args[1]}"
            ) from error
        self._sha256 = hashlib.sha256(text.encode()).hexdigest()
        with_system = [Message("system", _PROBE), Message("user", "Hello")]
        try:  # some templates refuse a system message, some drop it silently
            self.folds_system = _PROBE not in self._render(with_system)
        except PromptRefusal:
            self.folds_system = True
        unthinking = self._render(hello, thinking=0)
        self.switches = self._render(hello, thinking=1) != unthinking
        self.always_thinks = _ends_thinking(unthinking)
        self._marks = _mark_heads(tokenizer, text)
        self._unseen = _unseen_tokens(tokenizer)
        # A random marker of the places where a rendered prompt is cut; no message contains it.
        self._cut = secrets.token_hex(16)

    def identity(self) -> dict[str, str]:
        """Return the hash of its text, and what becomes of the system role."""
        return {
            "chat_template_sha256": self._sha256,
            "system_role": "folded" if self.folds_system else "native",
        }

    def prompt(self, messages: Sequence[Message], thinking: int | None = None) -> Prompt:
        """Render and tokenize a conversation, up to where the assistant's turn begins.

        `thinking` switches reasoning on (above 0) or off (0) where the template has a switch; None is its default.
        Raises ConfigError for 0 where the template always opens a think block, PromptRefusal where it refuses the
        messages (`chat_template`) or one contains a special token that cannot be read as plain text (`special_tokens`),
        UnicodeEncodeError for half of a surrogate pair."""
        if thinking == 0 and self.always_thinks:
            opens = "its chat template always opens a think block, so thinking cannot be 0"
            raise ConfigError(f"{self._where}: {opens}; name a number of tokens, such as 2048")
        if self.folds_system:
            messages = fold_system(messages)
        pieces = self._pieces(messages, thinking)
        tokens = array("i")
        for piece in pieces:
            piece.encode("utf-8")  # the tokenizer's own error would be a misleading TypeError
            # The template writes every special token itself, the begin-of-text included.
            encoded = self._tokenizer(piece, add_special_tokens=False, verbose=False)
            tokens.extend(encoded["input_ids"])
        return Prompt(tokens, _ends_thinking(pieces[-1]))

    def _pieces(self, messages: Sequence[Message], thinking: int | None) -> list[str]:
        """Render the prompt and cut it within every special token that a message contains."""
        text = self._render(messages, thinking)
        cut = []
        for message in messages:
            content = self._marks.sub(rf"\g<0>{self._cut}", message.content)
            cut.append(replace(message, content=content))
        if cut == list(messages):
            return [text]
        pieces = self._render(cut, thinking).split(self._cut)
        if "".join(pieces) != text:
            raise PromptRefusal(
                "special_tokens",
                "a message contains one of the model's special tokens, and the chat template changes the text around "
                "it, so it cannot be sent as plain text; remove that token from the scenario",
            )
        return pieces

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode an answer without special tokens, exactly as the model wrote it.

        Think tags stay even where they are special tokens: without them reasoning would be read as the answer.
        """
        unseen = self._unseen or frozenset()
        text = self._tokenizer.decode(
            [token for token in tokens if token not in unseen],
            skip_special_tokens=self._unseen is None,
            clean_up_tokenization_spaces=False,
        )
        return str(text)

    def _render(self, messages: Sequence[Message], thinking: int | None = None) -> str:
        values = {
            **self._tokenizer.special_tokens_map,
            **reasoning_switch(thinking),
            "messages": [message.to_dict() for message in messages],
        }
        templates = (self._sources, self._origins)
        try:
            return render_apart(self._number, templates, self._where, values, _SERVER)
        except TemplateTooLargeError:
            raise
        except ConfigError as error:
            raise PromptRefusal(
                "chat_template", f"the template refuses these messages: {error}"
            ) from error


def serve_chat_templates(seconds: float) -> None:
    """Render what the parent process asks for (`text.template_process`), as `apply_chat_template` does."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def open_template(sources: Mapping[str, str], origins: Mapping[str, str]) -> Renderer:
        def render(name: str, values: Mapping[str, Any]) -> str:
            variables = dict(values)
            messages = variables.pop("messages")
            try:
                texts, _ = render_jinja_template(
                    conversations=[messages],
                    chat_template=sources[name],
                    add_generation_prompt=True,
                    **variables,
                )
            except MemoryError:
                raise
            except (*FAULTS, ImportError) as error:  # an old jinja2
                raise ConfigError(" ".join(str(error).split())) from error
            text = str(texts[0])
            characters = sum(len(message["content"]) for message in messages)
            if len(text) > _MOST_ADDED + _MOST_GROWTH * characters:
                raise ConfigError(f"it makes {len(text):,} characters of {characters:,}")
            return text

        return render

    serve(open_template, seconds)


def read_reply(text: str, thinks: bool) -> tuple[str, str | None]:
    """Split a text into its answer (empty where the reasoning was cut) and its reasoning; without one (None) it stays
    exactly as it is. `thinks`: see `Prompt`."""
    answer, thinking = split_reasoning(text, thinks)
    return (text, None) if thinking is None else (answer, thinking)


def _ends_thinking(text: str) -> bool:
    return re.search(r"<think(?:ing)?\s*>\s*$", text, re.IGNORECASE) is not None


def _unseen_tokens(tokenizer: Any) -> frozenset[int] | None:
    """Return all special tokens except think tags; None where no think tag is a special token."""
    special = set(tokenizer.all_special_ids)
    for number, token in tokenizer.added_tokens_decoder.items():
        if token.special:
            special.add(number)
    tags = set()
    for number in special:
        if _THINK_TAG.fullmatch(tokenizer.convert_ids_to_tokens(number)):
            tags.add(number)
    return frozenset(special - tags) if tags else None


def _mark_heads(tokenizer: Any, template: str) -> re.Pattern[str]:
    """Compile a pattern of the first characters of marks, after which a text must be cut: of special tokens, and of
    added tokens that the template writes (some models' turn marks), but for words, white space, single characters."""
    # By first character: with one alternation, models with thousands of marks would take seconds a prompt.
    tails: dict[str, list[str]] = {}
    for token in tokenizer.added_tokens_decoder.values():
        text = token.content
        is_mark = token.special or (text in template and re.search(r"[^\w\s]", text))
        if len(text) > 1 and is_mark:
            tails.setdefault(text[0], []).append(re.escape(text[1:]))
    heads = []
    for head, tails_of_head in tails.items():
        heads.append(f"{re.escape(head)}(?={'|'.join(tails_of_head)})")
    return re.compile("|".join(heads) or "(?!)")


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Put the system text at the start of the first user message, before the assistant's in one of its own."""
    turns = [message for message in messages if message.role != "system"]
    texts = [
        message.content for message in messages if message.role == "system" and message.content
    ]
    if not texts:
        return turns
    if turns and turns[0].role == "user":
        texts.append(turns.pop(0).content)
    return [Message("user", "\n\n".join(texts)), *turns]


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request and its prompt, which may end inside a think block (`thinks`); `finish` delivers its outcome."""

    request: Request
    prompt: array[int]
    thinks: bool
    finish: Callable[[Outcome], None]

    @property
    def sampling(self) -> Sampling:
        return self.request.sampling

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and of the longest reply together."""
        return len(self.prompt) + self.sampling.budget


def tokenize_requests(
    template: Callable[[Sequence[Message], int | None], Prompt],
    context: int | None,
    requests: Sequence[Request],
    on_done: OnDone | None,
    unenforced: str = "",
) -> tuple[list[TokenRequest], dict[int, Outcome]]:
    """Tokenize the prompts by a `template` (`ChatTemplate.prompt`); one that is invalid or too long has failed already.

    `context`: tokens that prompt and reply may have together (None: no limit). `unenforced`: the engine, where it
    enforces no response schema. Return the requests that have not failed, and the outcomes by index, to which each
    `finish` adds one. Raises ConfigError for a request with a response schema that is not enforced.
    """
    jobs: list[TokenRequest] = []
    outcomes: dict[int, Outcome] = {}

    def finish(index: int, outcome: Outcome) -> None:
        outcomes[index] = outcome
        if on_done is not None:
            on_done(index, outcome)

    @lru_cache(maxsize=1)  # the samples of an item follow each other
    def read(messages: tuple[Message, ...], thinking: int | None) -> Prompt | Failure:
        try:
            return template(messages, thinking)
        except PromptRefusal as error:
            return Failure(*error.args)
        except UnicodeEncodeError as error:
            return Failure("unreadable_text", f"the prompt is not valid Unicode: {error.reason}")

    for index, request in enumerate(requests):
        request.sampling.require_temperature()
        schema = request.response_schema
        if unenforced and schema is not None:
            advice = "choose vllm:, openai:, anthropic: or server:"
            raise ConfigError(
                f"{unenforced} cannot enforce the response schema {schema.name!r}; {advice}"
            )
        prompt = read(request.messages, request.sampling.thinking)
        if isinstance(prompt, Failure):
            finish(index, prompt)
            continue
        job = TokenRequest(request, *prompt, partial(finish, index))
        if context is not None and job.tokens > context:
            sizes = f"the prompt has {len(job.prompt)} tokens; with {job.sampling.budget} for the answer"
            message = f"{sizes} that is more than the model's {context}"
            finish(index, Failure("context_length", message))
        else:
            jobs.append(job)
    return jobs, outcomes

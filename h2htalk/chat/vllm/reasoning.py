"""Read reasoning with vLLM's parsers (`reasoning_parser`), for models whose marks are not `<think>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from h2htalk.chat.local.chat_template import read_reply
from h2htalk.errors import ConfigError, quoted


class ReasoningReader:
    """One of vLLM's parsers with the model's tokenizer.

    Raises:
        ConfigError: vLLM has no such parser, or the tokenizer lacks its marks.
    """

    def __init__(self, name: str, tokenizer: Any, thinking: bool) -> None:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.reasoning import ReasoningParserManager

        try:
            parser_class = ReasoningParserManager.get_reasoning_parser(name)
        except KeyError:
            names = ", ".join(ReasoningParserManager.list_registered())
            raise ConfigError(f"unknown reasoning_parser {quoted(name)}; choose from {names}") from None
        switches = dict.fromkeys(("enable_thinking", "thinking"), thinking)
        try:
            self._parser = parser_class(tokenizer, chat_template_kwargs=switches)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"reasoning_parser={name} does not suit this model: {reason}; choose another") from error
        self._request = ChatCompletionRequest(messages=[{"role": "user", "content": ""}], chat_template_kwargs=switches)
        self._tokenizer = tokenizer

    def ended(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt already ends the reasoning, so that the reply has none."""
        return bool(self._parser.is_reasoning_end(list(prompt)))

    def read(self, prompt: Sequence[int], tokens: Sequence[int]) -> tuple[str, str | None]:
        """Split the model's tokens after the prompt into answer and reasoning (None where there is none)."""
        text = self._decode(tokens)
        if self.ended(prompt):
            return read_reply(self._plain(text), False)
        thinking, answer = self._parser.extract_reasoning(text, self._request)
        return self._plain(answer or "").strip(), self._plain(thinking).strip() if thinking else None

    def _decode(self, tokens: Sequence[int]) -> str:
        """Decode with special tokens, because a parser's marks may be special tokens."""
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _plain(self, text: str) -> str:
        """Remove special tokens from a text."""
        for mark in self._tokenizer.all_special_tokens:
            text = text.replace(mark, "")
        return text

"""vLLM's readers of reasoning (`reasoning_parser`), for models whose marks are not `<think>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from h2htalk.chat.local.chat_template import read_reply
from h2htalk.errors import ConfigError, quoted


class ReasoningReader:
    """One of vLLM's parsers, with the tokenizer whose marks it looks for.

    Raises:
        ConfigError: no such parser, or the tokenizer lacks its marks.
    """

    def __init__(self, name: str, tokenizer: Any, thinking: bool) -> None:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.reasoning import ReasoningParserManager

        try:
            parser_class = ReasoningParserManager.get_reasoning_parser(name)
        except KeyError:
            names = ", ".join(ReasoningParserManager.list_registered())
            raise ConfigError(
                f"reasoning_parser {quoted(name)}: vLLM has none such; choose from {names}"
            ) from None
        told = dict.fromkeys(("enable_thinking", "thinking"), thinking)
        try:
            self._parser = parser_class(tokenizer, chat_template_kwargs=told)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"reasoning_parser={name} does not suit this model: {reason}; choose another"
            ) from error
        self._request = ChatCompletionRequest(
            messages=[{"role": "user", "content": ""}], chat_template_kwargs=told
        )
        self._tokenizer = tokenizer

    def ended(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt closes the reasoning itself, so that the reply has none."""
        return bool(self._parser.is_reasoning_end(list(prompt)))

    def read(self, prompt: Sequence[int], tokens: Sequence[int]) -> tuple[str, str | None]:
        """Answer and reasoning (None where there is none) of what the model wrote after the prompt."""
        text = self._decode(tokens)
        if self.ended(prompt):
            return read_reply(self._plain(text), False)
        thinking, answer = self._parser.extract_reasoning(text, self._request)
        return self._plain(answer or "").strip(), self._plain(thinking).strip() if thinking else None

    def _decode(self, tokens: Sequence[int]) -> str:
        """The text with special tokens: a parser's marks may be among them."""
        return str(
            self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    def _plain(self, text: str) -> str:
        """The text without special tokens."""
        for mark in self._tokenizer.all_special_tokens:
            text = text.replace(mark, "")
        return text

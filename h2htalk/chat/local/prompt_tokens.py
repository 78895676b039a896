"""Turn requests into prompts of tokens, for the engines that load a checkpoint: `hf:` and `vllm:`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.chat.local.chat_template import ChatTemplate, MarkRefusal, Prompt, TemplateRefusal
from h2htalk.chat.protocol import Message, OnDone, Request, Sampling
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request with its prompt as tokens; `index` is its position among the requests.

    `thinks`: the prompt ends inside a think block.
    """

    index: int
    request: Request
    prompt: array[int]
    thinks: bool

    @property
    def sampling(self) -> Sampling:
        return self.request.sampling

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and of the longest reply together."""
        return len(self.prompt) + self.sampling.budget


def tokenize_requests(
    template: ChatTemplate, where: str, context: int | None, requests: Sequence[Request], finish: OnDone
) -> list[TokenRequest]:
    """Tokenize the prompts; a request whose prompt is invalid or too long is finished here, as a failure.

    Args:
        template: the model's.
        where: the model as the user wrote it, for messages: `hf:FOLDER`.
        context: tokens that prompt and reply may have together; None where the model has no limit.
        requests: neighbouring samples of one item are tokenized once.
        finish: called as `(index, failure)`.

    Raises:
        ConfigError: a request has no temperature, or thinking 0 where the template always opens a think block.
    """
    jobs = []
    last: tuple[tuple[Message, ...], int | None] | None = None
    prompt: Prompt | Failure = Failure("missing", "no prompt")
    for index, request in enumerate(requests):
        request.sampling.require_temperature()
        thinking = request.sampling.thinking
        if thinking == 0 and template.always_thinks:
            raise ConfigError(
                f"{where}: its chat template always opens a think block, so thinking cannot be 0; name a number "
                "of tokens, such as 2048"
            )
        if last != (request.messages, thinking):
            prompt, last = _read(template, request.messages, thinking), (request.messages, thinking)
        if isinstance(prompt, Failure):
            finish(index, prompt)
            continue
        job = TokenRequest(index, request, prompt.tokens, prompt.thinks)
        if context is not None and job.tokens > context:
            finish(index, _beyond_context(job, context))
        else:
            jobs.append(job)
    return jobs


def refuse_response_schema(request: Request, engine: str) -> None:
    """Raise ConfigError for a request with a response schema, which `engine` cannot enforce."""
    if (schema := request.response_schema) is not None:
        raise ConfigError(
            f"{engine} cannot enforce the response schema {schema.name!r}; choose vllm:, openai:, anthropic: or server:"
        )


def _read(template: ChatTemplate, messages: Sequence[Message], thinking: int | None) -> Prompt | Failure:
    try:
        return template.prompt(messages, thinking)
    except TemplateRefusal as error:
        return Failure("chat_template", f"the template refuses these messages: {error}")
    except MarkRefusal as error:
        return Failure("special_tokens", str(error))
    except UnicodeEncodeError as error:
        return Failure("unreadable_text", f"the prompt is not valid Unicode: {error.reason}")


def _beyond_context(job: TokenRequest, context: int) -> Failure:
    asked = f"the prompt has {len(job.prompt)} tokens; with {job.sampling.budget} for the answer"
    return Failure("context_length", f"{asked} that is more than the model's {context}")

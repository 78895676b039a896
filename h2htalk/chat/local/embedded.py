"""`embedded`: SmolLM2-135M-Instruct in OpenVINO GenAI, on any machine, without torch.

The model is small and knows English only: it is for trying all steps of an evaluation, not for its answers. A request
gets the same answer in any order and at any concurrency; `embedded_batching` describes how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.local.embedded_batching import (
    CONTEXT_TOKENS,
    FEATURE,
    PRECISION,
    EmbeddedEngine,
    Tokens,
    unreadable_marks,
)
from h2htalk.chat.local.prompt_tokens import refuse_response_schema
from h2htalk.chat.protocol import Message, OnDone, Outcome, Reply, Request, Sampling
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError
from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged
from h2htalk.text.openvino_runtime import import_openvino

MODEL = "smollm2"


@dataclass(frozen=True, slots=True)
class _Job:
    """A request whose prompt is tokens; `index` is its place among the requests."""

    index: int
    prompt: Tokens
    sampling: Sampling


class EmbeddedChat:
    """The embedded model. `name` is empty or `smollm2`. The first call loads it (2-3 s).

    `concurrency` is the only option it uses.

    Raises:
        ConfigError: another name, or weights that were changed.
        MissingExtraError: OpenVINO GenAI or the package of the weights is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        if name not in ("", MODEL):
            raise ConfigError(f"unknown embedded model {name!r}; choose embedded or embedded:{MODEL}")
        self._engine_version = str(import_openvino("openvino_genai", FEATURE).get_version())
        self._weights = find_packaged(SMOLLM2_GGUF, FEATURE)
        self._concurrency = max(1, options.concurrency)
        self._engine: EmbeddedEngine | None = None

    @property
    def subject(self) -> Mapping[str, str]:
        """Engine, model, hash of the weights, engine and version, precision."""
        return {
            "engine": "embedded",
            "model": "SmolLM2-135M-Instruct.Q4_1",
            "weights_sha256": SMOLLM2_GGUF.sha256,
            "engine_version": f"openvino-genai {self._engine_version}",
            "precision": " ".join(f"{key}={value}" for key, value in PRECISION.items()),
        }

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`.

        Failures: `context_length` (prompt and answer exceed 8,192 tokens), `unreadable_text` (no valid Unicode).
        """
        outcomes: dict[int, Outcome] = {}

        def finish(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            if on_done is not None:
                on_done(index, outcome)

        if self._engine is None:
            self._engine = EmbeddedEngine(self._weights, self._concurrency)
        try:
            self._run(self._engine, self._prepare(self._engine, requests, finish), finish)
        finally:
            self._engine.abandon()
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """Free the memory of model and cache."""
        self._engine = None

    def _prepare(self, engine: EmbeddedEngine, requests: Sequence[Request], finish: OnDone) -> list[_Job]:
        """Tokenize the prompts and sort them, so that common beginnings are neighbours; a prompt that is unreadable or
        too long fails here."""
        marks = unreadable_marks(engine.special_tokens)
        jobs = []
        for index, request in enumerate(requests):
            refuse_response_schema(request, "embedded")
            request.sampling.require_temperature()
            try:
                prompt = engine.encode(prompt_pieces(request.messages, marks))
            except UnicodeEncodeError as error:
                finish(index, Failure("unreadable_text", f"the prompt is not valid Unicode: {error.reason}"))
                continue
            if len(prompt) + request.sampling.budget > CONTEXT_TOKENS:
                finish(index, _beyond_context(len(prompt), request.sampling.budget))
                continue
            jobs.append(_Job(index, prompt, request.sampling))
        # Big-endian bytes sort as the numbers do.
        return sorted(jobs, key=lambda job: job.prompt.astype(">u4").tobytes())

    @staticmethod
    def _run(engine: EmbeddedEngine, jobs: Sequence[_Job], finish: OnDone) -> None:
        lengths = {job.index: len(job.prompt) for job in jobs}
        waiting = list(reversed(jobs))
        while waiting or engine.busy:
            if waiting:
                job = waiting[-1]
                if engine.offer(job.index, job.prompt, job.sampling):
                    waiting.pop()
            for ended in engine.step():
                usage = Usage(lengths[ended.index], len(ended.tokens))
                reason = "stop" if ended.stopped else "length"
                finish(ended.index, Reply(engine.decode(ended.tokens), reason, usage))


def prompt_pieces(messages: Sequence[Message], marks: re.Pattern[str]) -> list[str]:
    """The messages in the model's chat template (ChatML), open for the assistant's turn.

    Without a system message the model's own template adds one about an assistant named SmolLM; here an empty one is
    used, so that no other persona is added.

    Args:
        marks: where a message's text must be cut so that a special token in it is read as plain text.

    Returns:
        Texts to be tokenized one by one: a single one, unless a message contains a special token.
    """
    if not messages or messages[0].role != "system":
        messages = (Message("system", ""), *messages)
    pieces = [""]
    for message in messages:
        first, *rest = marks.split(message.content)
        pieces[-1] += f"<|im_start|>{message.role}\n{first}"
        pieces += rest
        pieces[-1] += "<|im_end|>\n"
    pieces[-1] += "<|im_start|>assistant\n"
    return pieces


def _beyond_context(prompt_tokens: int, max_tokens: int) -> Failure:
    asked = f"the prompt has {prompt_tokens} tokens; with {max_tokens} for the answer"
    return Failure("context_length", f"{asked} that is more than the model's {CONTEXT_TOKENS}")

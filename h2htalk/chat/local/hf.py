"""`hf:REPO_OR_PATH`: any causal language model of transformers, in this process.

Requests are batched by length. Greedy answers and seeded samples depend on the request alone, except for rounding:
in a batch with other neighbours the same prompt is computed in another order, which can decide a near-tie between two
tokens differently (very rarely in float32, sometimes in bfloat16). The order of the requests never matters. Only the
end-of-text tokens of the checkpoint's generation config are used; the request alone decides the sampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.local.chat_template import ChatTemplate, read_reply
from h2htalk.chat.local.checkpoints import engine_versions, open_checkpoint
from h2htalk.chat.local.generation import OutOfMemory, Row, generate_batch, has_cache, is_recurrent
from h2htalk.chat.local.prompt_tokens import TokenRequest, refuse_response_schema, tokenize_requests
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError

CPU_CACHE_BYTES = 2 << 30
GPU_CACHE_SHARE = 0.5  # of the memory that the weights leave free; activations need part of the rest


class TransformersChat:
    """A checkpoint from a folder or the Hugging Face Hub.

    Raises:
        ConfigError: no such model, no chat template, or a model that cannot be run.
        MissingExtraError: torch or transformers is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        checkpoint, self._model = open_checkpoint(name, options.download)
        self._where = f"hf:{name}"
        self._template = ChatTemplate(checkpoint.tokenizer, self._where)
        if not has_cache(self._model):
            raise ConfigError(f"hf:{name}: its architecture has no KV cache; serve it and use server:MODEL@URL")
        self._rows = 1 if is_recurrent(self._model) else max(1, options.concurrency)
        self._stop_tokens = checkpoint.stop_tokens()
        self._model.generation_config = type(self._model.generation_config)()  # the rest of it is not used
        self._context = checkpoint.context_tokens()
        self._subject = {
            "engine": "hf",
            **checkpoint.identity(),
            "chat_template_sha256": self._template.sha256,
            "system_role": "folded" if self._template.folds_system else "native",
            "engine_version": engine_versions(),
            "precision": str(self._model.dtype).removeprefix("torch."),
            "device": self._model.device.type,
        }

    @property
    def subject(self) -> Mapping[str, str]:
        """Engine, model and its weights, chat template, engine and versions, precision, device."""
        return self._subject

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`.

        Failures: `context_length`, `chat_template` (the template refuses the roles), `special_tokens` (a message
        contains one that cannot be read as plain text), `unreadable_text` (not valid Unicode), `out_of_memory`.
        """
        outcomes: list[Outcome | None] = [None] * len(requests)

        def finish(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            if on_done is not None:
                on_done(index, outcome)

        jobs = tokenize_requests(self._template, self._where, self._context, requests, finish)
        for job in jobs:
            refuse_response_schema(job.request, "hf:")
        for batch in self._batches(jobs):
            self._answer(batch, finish)
        return [outcome for outcome in outcomes if outcome is not None]

    def close(self) -> None:
        """Free the memory of the weights."""
        self._model = None

    def _batches(self, jobs: Sequence[TokenRequest]) -> Iterator[list[TokenRequest]]:
        """Group jobs of equal sampling and similar length, longest first, as many as rows and cache allow.

        Ties are ordered by id and sample: batches are the same for any order of the requests.
        """
        budget = self._cache_tokens()
        batch: list[TokenRequest] = []
        longest = 0
        for job in sorted(jobs, key=_batch_order):
            if batch and (
                len(batch) >= self._rows
                or _drawing(job) != _drawing(batch[0])
                or max(longest, job.tokens) * (len(batch) + 1) > budget
            ):
                yield batch
                batch, longest = [], 0
            batch.append(job)
            longest = max(longest, job.tokens)
        if batch:
            yield batch

    def _cache_tokens(self) -> int:
        """Return how many tokens (padding included) the cache of one batch may hold."""
        config = self._model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        token_bytes: int = 2 * config.num_hidden_layers * heads * width * int(self._model.dtype.itemsize)
        return _cache_bytes(self._model) // token_bytes

    def _answer(self, batch: Sequence[TokenRequest], finish: OnDone) -> None:
        """Decode a batch; on out of memory decode its halves; a single request then fails."""
        left = dict(enumerate(batch))

        def on_row(place: int, tokens: list[int], stopped: bool) -> None:
            job = left.pop(place)
            # Decoding leaves out special tokens only, and a stop token may be an ordinary one.
            text, thinking = read_reply(self._template.decode(tokens[: len(tokens) - stopped]), job.thinks)
            usage = Usage(len(job.prompt), len(tokens))
            finish(job.index, Reply(text, "stop" if stopped else "length", usage, thinking))

        rows = [Row(job.prompt, job.sampling.budget, job.sampling.seed) for job in batch]
        temperature, top_p = _drawing(batch[0])
        try:
            generate_batch(self._model, rows, self._stop_tokens, on_row, temperature, top_p)
            return
        except OutOfMemory as error:
            message = str(error).splitlines()[0]
        _release(self._model)
        if len(batch) == 1:
            failure = Failure("out_of_memory", f"{batch[0].tokens} tokens do not fit in memory: {message}")
            finish(batch[0].index, failure)
            return
        rest = list(left.values())
        middle = (len(rest) + 1) // 2
        for half in (rest[:middle], rest[middle:]):
            if half:
                self._answer(half, finish)


def _batch_order(job: TokenRequest) -> tuple[Any, ...]:
    return (_drawing(job), -len(job.prompt), -job.sampling.budget, job.request.id, job.request.sample)


def _drawing(job: TokenRequest) -> tuple[float, float]:
    """Return temperature and top_p; greedy requests are equal whatever their top_p."""
    temperature = job.sampling.require_temperature()
    return (temperature, job.sampling.top_p) if temperature > 0 else (0.0, 1.0)


def _cache_bytes(model: Any) -> int:
    """Return how many bytes the cache of one batch may take.

    It depends on model and device, not on the free memory, so that batches are the same in every run.
    """
    import torch

    if model.device.type != "cuda":
        return CPU_CACHE_BYTES
    total = torch.cuda.get_device_properties(model.device).total_memory
    return int(GPU_CACHE_SHARE * max(0, total - model.get_memory_footprint()))


def _release(model: Any) -> None:
    """Free a failed batch's memory before its halves are tried."""
    import gc

    import torch

    gc.collect()
    if model.device.type == "cuda":
        torch.cuda.empty_cache()

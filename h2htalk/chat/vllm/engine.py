"""`vllm:REPO_OR_PATH`: a checkpoint in vLLM, driven from this process.

Prompts are read as for `hf:` (same template, same tokens), and of the checkpoint's generation config only the
end-of-text tokens count. Requests that begin alike are sent one after the other, so that their common part, and
the whole prompt of several samples of an item, is computed once.

What holds, and what does not. A greedy answer is the most likely token at each step, a seeded one is drawn from
the request's own generator. But what is computed together with a request changes the last bits of its logits,
and with them now and then a near-tie between two tokens, from where on an answer goes another way. So an answer
may depend on its neighbours, and thereby on the order of the requests, on what a restart still has to ask, and on
parallel sizes: rarely in float32, more often in bfloat16. `batch_invariant` rules it out on GPUs that have it.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, TypeVar

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.event_loop import in_running_loop, inside_loop, run_all
from h2htalk.chat.local.chat_template import ChatTemplate, read_reply
from h2htalk.chat.local.checkpoints import describe_checkpoint, find_source
from h2htalk.chat.local.prompt_tokens import TokenRequest, tokenize_requests
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.chat.vllm.engine_options import VLLMOptions
from h2htalk.chat.vllm.lora import check_fits, find_adapter, parameter_shapes
from h2htalk.chat.vllm.processes import VLLMProcesses
from h2htalk.chat.vllm.reasoning import ReasoningReader
from h2htalk.chat.vllm.startup import (
    check_adapter,
    engine_versions,
    explained,
    require_vllm,
    start_engine,
)
from h2htalk.data.responses import Failure, Usage
from h2htalk.errors import ConfigError, ModelCallError

# Below it vLLM would draw at 0.01 without a word.
LOWEST_TEMPERATURE = 0.01
# Requests that vLLM holds for each that it computes, so that it never waits for us.
QUEUED = 2

_T = TypeVar("_T")


class VLLMChat:
    """A checkpoint from a folder or the Hugging Face Hub, with the engine options of `VLLMOptions`.

    Of the other options none counts: how many requests are computed together is `max_num_seqs` and the memory.

    Raises:
        ConfigError: no such model or adapter, no chat template, an option that cannot be, or vLLM cannot run the
            model here (architecture, quantisation, memory); says what to change.
        MissingExtraError: vLLM is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        self._options = VLLMOptions.parse(options.engine_options)
        require_vllm()
        if in_running_loop():  # vLLM would tie itself to that one, and `complete` would wait for ever
            raise ConfigError(inside_loop("open_chat, model, options"))
        source = find_source("vllm", name, download=True)  # vLLM itself fetches what is not cached
        self._where = source.where
        description = describe_checkpoint(source, self._options.revision, self._options.tokenizer)
        self._tokenizer = description.tokenizer
        self._template = ChatTemplate(description.tokenizer, self._where)
        self._stop_tokens = sorted(description.stop_tokens())
        adapter = find_adapter(self._options.lora) if self._options.lora else None
        if adapter is not None:
            check_fits(adapter, parameter_shapes(description.config), self._where)
        identity = description.identity() | (adapter.identity() if adapter else {})
        self._numbers = count()
        self._runner = asyncio.Runner()
        self._engine: Any = None
        self._lora: Any = None
        self._processes = VLLMProcesses()
        self._keep_log = False
        try:
            with self._processes.quiet():
                self._readers = self._open_readers()
                if adapter is not None:
                    check_adapter(adapter)
            self._engine = start_engine(self._options, description, adapter, self._processes)
            with self._processes.quiet():
                if adapter is not None:
                    self._lora = self._lay_over(adapter.name, str(adapter.folder))
        except BaseException as error:  # passed on: no process of vLLM's may stay, Ctrl-C included
            # The log stays where the message sends its reader there.
            self._keep_log = str(self._processes.log) in str(error)
            self._shut_down()
            raise
        atexit.register(self._shut_down)  # of whoever does not close it: vLLM's processes must not stay
        self._context = int(self._engine.model_config.max_model_len)
        self._subject = {"engine": "vllm", **identity, **self._named()}

    @property
    def subject(self) -> Mapping[str, str]:
        """Engine, model and its weights, adapter, chat template, engine and versions, precision, device, and
        the engine options that change answers. Parallel sizes and memory are not among them."""
        return self._subject

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Each is handed over while others are computed.

        Failures: `context_length`, `chat_template` (the template refuses the roles), `special_tokens` (a message
        holds one that cannot be read as plain text), `unreadable_text` (no valid Unicode), `bad_request` (vLLM
        refuses this request), `engine_error` (it gave it up).

        Raises:
            ConfigError: a temperature, a form or a wish not to think that this model cannot be held to; or this is
                called inside a running event loop.
            ModelCallError: vLLM's processes died. What was finished was handed over.
        """
        if self._engine is None:
            raise ModelCallError(f"{self._where} is closed; open it again")
        outcomes: list[Outcome | None] = [None] * len(requests)

        def finish(index: int, outcome: Outcome) -> None:
            nonlocal on_done
            outcomes[index] = outcome
            if on_done is None:
                return
            try:
                on_done(index, outcome)
            except BaseException:
                on_done = None  # nor is it called for what ends before the others are cancelled
                raise

        jobs = tokenize_requests(self._template, self._where, self._context, requests, finish)
        for job in jobs:
            self._check(job)
        self._run(self._answer_all(sorted(jobs, key=_prefix_order), finish))
        return [outcome for outcome in outcomes if outcome is not None]

    def close(self) -> None:
        """End vLLM's processes and give their memory back."""
        if in_running_loop():  # ours cannot be ended beside another in this thread
            with ThreadPoolExecutor(1) as thread:
                thread.submit(self._shut_down).result()
        else:
            self._shut_down()

    async def _answer_all(self, jobs: Sequence[TokenRequest], finish: OnDone) -> None:
        """Keep the engine's queue filled until all are answered; an error cancels what is left."""
        config = self._engine.vllm_config
        places = QUEUED * config.scheduler_config.max_num_seqs * config.parallel_config.data_parallel_size
        todo = iter(jobs)
        workers = range(max(1, min(places, len(jobs))))
        await run_all([asyncio.create_task(self._work(todo, finish)) for _ in workers])

    async def _work(self, todo: Iterator[TokenRequest], finish: OnDone) -> None:
        for job in todo:
            finish(job.index, await self._answer(job))

    async def _answer(self, job: TokenRequest) -> Outcome:
        from vllm.inputs.engine import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        reader = self._reader(job)
        ended = None if reader is None or job.request.response_schema is None else reader.ended(job.prompt)
        stream = self._engine.generate(
            tokens_input(job.prompt.tolist()),
            self._parameters(job),
            f"h2htalk-{next(self._numbers)}",
            lora_request=self._lora,
            reasoning_ended=ended,
        )
        try:
            (output,) = [whole async for whole in stream]  # FINAL_ONLY: one, at the end
        except EngineDeadError as error:
            raise self._death(error) from error
        except EngineGenerateError as error:
            return Failure("engine_error", f"vLLM gave it up: {_line(error.__cause__ or error)}")
        except ValueError as error:
            return Failure("bad_request", f"vLLM refuses it: {_line(error)}")
        return self._read(job, reader, output)

    def _read(self, job: TokenRequest, reader: ReasoningReader | None, output: Any) -> Outcome:
        (answer,) = output.outputs
        if answer.finish_reason not in ("stop", "length"):
            return Failure("engine_error", f"vLLM ended it with {answer.finish_reason!r}; start again")
        usage = Usage(len(job.prompt), len(answer.token_ids))
        # A stop token need not be a special one, which decoding leaves out.
        stopped = answer.finish_reason == "stop" and answer.token_ids[-1] in self._stop_tokens
        tokens = list(answer.token_ids)[: len(answer.token_ids) - stopped]
        if reader is None:
            text, thinking = read_reply(self._template.decode(tokens), job.thinks)
        else:
            text, thinking = reader.read(job.prompt, tokens)
        return Reply(text, answer.finish_reason, usage, thinking)

    def _parameters(self, job: TokenRequest) -> Any:
        """The request's sampling in vLLM's words, and nothing else: no penalty, no top-k."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        schema = job.request.response_schema
        return SamplingParams(
            temperature=job.sampling.require_temperature(),
            top_p=job.sampling.top_p,
            seed=job.sampling.seed,
            max_tokens=job.sampling.budget,
            stop_token_ids=self._stop_tokens,
            detokenize=False,  # the template's decoder does it, as for `hf:`
            output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=StructuredOutputsParams(json=schema.schema()) if schema else None,
        )

    def _check(self, job: TokenRequest) -> None:
        """Raise ConfigError for what would not be done as asked."""
        if 0 < job.sampling.require_temperature() < LOWEST_TEMPERATURE:
            raise ConfigError(
                f"{self._where}: temperature {job.sampling.temperature:g} is below {LOWEST_TEMPERATURE}, the least "
                "that vLLM draws with; take 0 for the most likely token"
            )
        if job.request.response_schema is not None and job.thinks and not self._readers:
            schema = job.request.response_schema
            raise ConfigError(
                f"{self._where} reasons before it answers; the response schema {schema.name!r} needs --thinking 0 or "
                "--engine-option reasoning_parser=NAME"
            )

    def _reader(self, job: TokenRequest) -> ReasoningReader | None:
        return self._readers.get(job.sampling.thinking != 0)

    def _open_readers(self) -> dict[bool, ReasoningReader]:
        """By whether the model was left its reasoning: some of vLLM's parsers want to know."""
        name = self._options.reasoning_parser
        return {told: ReasoningReader(name, self._tokenizer, told) for told in (True, False)} if name else {}

    def _lay_over(self, name: str, folder: str) -> Any:
        """Load the adapter now, so that one that vLLM refuses is an error and not thousands of failures."""
        from vllm.lora.request import LoRARequest

        request = LoRARequest(name, 1, folder)
        explained(lambda: self._run(self._engine.add_lora(request)), f"lora={name}", self._processes)
        return request

    def _named(self) -> dict[str, str]:
        from vllm.platforms import current_platform

        quantization = self._engine.model_config.quantization
        return {
            "chat_template_sha256": self._template.sha256,
            "system_role": "folded" if self._template.folds_system else "native",
            "engine_version": engine_versions(),
            "precision": str(self._engine.model_config.dtype).removeprefix("torch."),
            "device": current_platform.device_type,
            **self._options.subject(),
            **({"quantization": str(quantization)} if quantization else {}),
        }

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run on the loop that the engine's own task lives on."""
        if in_running_loop():
            work.close()
            raise ConfigError(inside_loop("chat.complete, requests"))
        return self._runner.run(work)

    def _death(self, error: Exception) -> ModelCallError:
        self._keep_log = self._processes.log is not None
        return ModelCallError(
            f"{self._where}: vLLM died ({_line(error)}): start again, what is finished is kept"
            f"{self._processes.log_end()}"
        )

    def _shut_down(self) -> None:
        engine, self._engine = self._engine, None
        try:
            if engine is not None:
                with self._processes.quiet():
                    engine.shutdown()
                # Once is enough: again at the interpreter's end, when it is deleted, it would only complain.
                engine.shutdown = lambda timeout=None: None
        finally:
            self._processes.close(self._keep_log)
            self._runner.close()
            atexit.unregister(self._shut_down)


def _prefix_order(job: TokenRequest) -> tuple[Any, ...]:
    """Prompts that begin alike side by side; ties go by id and sample, never by place."""
    return (job.prompt, job.request.id, job.request.sample)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]

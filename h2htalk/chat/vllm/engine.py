"""`vllm:REPO_OR_PATH`: a checkpoint in vLLM, controlled from this process.

Prompts are tokenized as for `hf:`, and only the end-of-text tokens of the checkpoint's generation config are used.
Requests that begin alike are sent one after the other, so that vLLM computes their common prefix once.

A greedy answer takes the most likely token at each step, a seeded one samples from the request's own generator. But
the other requests of a batch change the last bits of a request's logits, and sometimes the order of two tokens that
are nearly tied; the rest of the answer then differs. So an answer may depend on the order of the requests, on which
ones a restart still sends, and on parallel sizes: rarely in float32, more often in bfloat16. `batch_invariant`
prevents this on GPUs that support it.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, TypeVar

from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.event_loop import in_running_loop, run_all
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

# vLLM silently raises lower temperatures to this one.
LOWEST_TEMPERATURE = 0.01
# Requests in vLLM's queue for each that it computes, so that it never waits for the next one.
QUEUED = 2
IN_LOOP = (
    "vllm: cannot run inside a running event loop (a notebook, an async function); call the function in a thread: "
    "await asyncio.to_thread(h2htalk.evaluate, spec)"
)

_T = TypeVar("_T")


class VLLMChat:
    """A checkpoint from a folder or the Hugging Face Hub, with the engine options of `VLLMOptions`.

    It uses no other options: `max_num_seqs` and the memory decide how many requests are computed together.

    Raises:
        ConfigError: no such model or adapter, no chat template, an invalid option, or vLLM cannot run the
            model here (architecture, quantisation, memory).
        MissingExtraError: vLLM is not installed.
    """

    def __init__(self, name: str, options: ChatOptions) -> None:
        self._options = VLLMOptions.parse(options.engine_options)
        require_vllm()
        if in_running_loop():  # vLLM would attach to that loop, and `complete` would wait for ever
            raise ConfigError(IN_LOOP)
        source = find_source("vllm", name, download=True)  # vLLM itself fetches files that are not cached
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
                    self._lora = self._load_adapter(adapter.name, str(adapter.folder))
        except BaseException as error:  # raised again; no process of vLLM may stay, also after Ctrl-C
            # The log is kept where the message names it.
            self._keep_log = str(self._processes.log) in str(error)
            self._shut_down()
            raise
        atexit.register(self._shut_down)  # ends vLLM's processes where the caller does not close the engine
        self._context = int(self._engine.model_config.max_model_len)
        self._subject = {"engine": "vllm", **identity, **self._named()}

    @property
    def subject(self) -> Mapping[str, str]:
        """Engine, model and its weights, adapter, chat template, engine and versions, precision, device, and
        the engine options that change answers; parallel sizes and memory are not included."""
        return self._subject

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Each outcome is delivered while others are computed.

        Failures: `context_length`, `chat_template` (the template refuses the roles), `special_tokens` (a message
        contains one that cannot be read as plain text), `unreadable_text` (not valid Unicode), `bad_request` (vLLM
        refuses this request), `engine_error` (vLLM failed on it).

        Raises:
            ConfigError: this model cannot follow a temperature, a response schema or thinking 0; or the call is made
                inside a running event loop.
            ModelCallError: vLLM's processes died. Finished outcomes were delivered.
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
                on_done = None  # not called either for requests that end before they are cancelled
                raise

        jobs = tokenize_requests(self._template, self._where, self._context, requests, finish)
        for job in jobs:
            self._check(job)
        self._run(self._answer_all(sorted(jobs, key=_prefix_order), finish))
        return [outcome for outcome in outcomes if outcome is not None]

    def close(self) -> None:
        """End vLLM's processes and free their memory."""
        if in_running_loop():  # this thread's running loop does not allow another one to be closed
            with ThreadPoolExecutor(1) as thread:
                thread.submit(self._shut_down).result()
        else:
            self._shut_down()

    async def _answer_all(self, jobs: Sequence[TokenRequest], finish: OnDone) -> None:
        """Keep the engine's queue filled until all are answered; an error cancels the rest."""
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
            return Failure("engine_error", f"vLLM failed on this request: {_line(error.__cause__ or error)}")
        except ValueError as error:
            return Failure("bad_request", f"vLLM refuses this request: {_line(error)}")
        return self._read(job, reader, output)

    def _read(self, job: TokenRequest, reader: ReasoningReader | None, output: Any) -> Outcome:
        (answer,) = output.outputs
        if answer.finish_reason not in ("stop", "length"):
            return Failure("engine_error", f"vLLM ended this request with {answer.finish_reason!r}; start again")
        usage = Usage(len(job.prompt), len(answer.token_ids))
        # Decoding leaves out special tokens only, and a stop token may be an ordinary one.
        stopped = answer.finish_reason == "stop" and answer.token_ids[-1] in self._stop_tokens
        tokens = list(answer.token_ids)[: len(answer.token_ids) - stopped]
        if reader is None:
            text, thinking = read_reply(self._template.decode(tokens), job.thinks)
        else:
            text, thinking = reader.read(job.prompt, tokens)
        return Reply(text, answer.finish_reason, usage, thinking)

    def _parameters(self, job: TokenRequest) -> Any:
        """Convert the request's sampling to vLLM's parameters; nothing is added: no penalty, no top-k."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        schema = job.request.response_schema
        return SamplingParams(
            temperature=job.sampling.require_temperature(),
            top_p=job.sampling.top_p,
            seed=job.sampling.seed,
            max_tokens=job.sampling.budget,
            stop_token_ids=self._stop_tokens,
            detokenize=False,  # `ChatTemplate.decode` does it, as for `hf:`
            output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=StructuredOutputsParams(json=schema.schema()) if schema else None,
        )

    def _check(self, job: TokenRequest) -> None:
        """Raise ConfigError for settings that vLLM would not follow exactly."""
        if 0 < job.sampling.require_temperature() < LOWEST_TEMPERATURE:
            raise ConfigError(
                f"{self._where}: temperature {job.sampling.temperature:g} is below {LOWEST_TEMPERATURE}, the lowest "
                "that vLLM samples with; use 0 for the most likely token"
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
        """Open a reader for requests with reasoning and one for those without: some of vLLM's parsers differ."""
        name = self._options.reasoning_parser
        return {on: ReasoningReader(name, self._tokenizer, on) for on in (True, False)} if name else {}

    def _load_adapter(self, name: str, folder: str) -> Any:
        """Load the adapter now, so that a refused one is one error and not thousands of failures."""
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
        """Run on the event loop of the engine's own task."""
        if in_running_loop():
            work.close()
            raise ConfigError(IN_LOOP)
        return self._runner.run(work)

    def _death(self, error: Exception) -> ModelCallError:
        self._keep_log = self._processes.log is not None
        return ModelCallError(
            f"{self._where}: vLLM died ({_line(error)}): start again, finished answers are kept"
            f"{self._processes.log_end()}"
        )

    def _shut_down(self) -> None:
        engine, self._engine = self._engine, None
        try:
            if engine is not None:
                with self._processes.quiet():
                    engine.shutdown()
                # A second shutdown, when the interpreter deletes the engine at its end, would print errors.
                engine.shutdown = lambda timeout=None: None
        finally:
            self._processes.close(self._keep_log)
            self._runner.close()
            atexit.unregister(self._shut_down)


def _prefix_order(job: TokenRequest) -> tuple[Any, ...]:
    """Sort prompts that begin alike next to each other; ties are ordered by id and sample."""
    return (job.prompt, job.request.id, job.request.sample)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]

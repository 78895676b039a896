"""`vllm:REPO_OR_PATH`: a checkpoint in a vLLM server of its own, asked by the same loop as `server:`.

Prompts are tokenized here as for `hf:` and sent as token ids, so that a special token in a message stays plain text;
the server returns token ids. Only the end-of-text tokens of the checkpoint's generation config are used. Requests that
begin alike are sent one after the other, so that vLLM computes their common prefix once.

The other requests of a batch change the last bits of a request's logits, and so sometimes the order of two tokens that
are nearly tied and the rest of the answer. An answer may so depend on the order of the requests, on which ones a
restart still sends, and on parallel sizes: rarely in float32, more often in bfloat16. `batch_invariant` prevents this
on GPUs that support it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import aiohttp
from pydantic import Field

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.live_calls import Connection, run_alone, run_calls
from h2htalk.chat.local.chat_template import (
    ChatTemplate,
    TokenRequest,
    read_reply,
    tokenize_requests,
)
from h2htalk.chat.local.checkpoints import (
    Description,
    describe_checkpoint,
    library_versions,
)
from h2htalk.chat.protocol import (
    Answer,
    Call,
    CallOutcome,
    FailedCall,
    HttpAnswer,
    OnDone,
    Outcome,
    Reply,
    Request,
    Send,
    reasoning_switch,
)
from h2htalk.chat.server import ServerWire, exchange, open_session
from h2htalk.chat.vllm import supervisor
from h2htalk.chat.vllm.adapter import RANKS, Adapter, check_fits, find_adapter
from h2htalk.chat.wire_formats import malformed_answer
from h2htalk.chat.wire_options import EngineOptions
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError, MissingExtraError, ModelCallError
from h2htalk.extras import VLLM

CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
# vLLM silently raises lower temperatures to this one.
LOWEST_TEMPERATURE = 0.01
# Requests at the server for each that a copy of the model computes (by default up to 512), so that it never waits.
QUEUED = 2
USUAL_SEQS = 512
NO_LIMIT = 604_800.0  # seconds that a request may wait for its turn and its answer
# Keys whose value changes the answers by more than rounding.
CHANGE_ANSWERS = {
    "quantization",
    "kv_cache_dtype",
    "reasoning_parser",
    "tokenizer",
    "batch_invariant",
}

# What `vllm serve` runs; that command itself does not start with the distribution `vllm-cpu`.
MODULE = "vllm.entrypoints.launchers.api_server.entry"
URL = "http://vllm"
# No telemetry; a process that is forked after CUDA was initialised dies.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
_CAUSE = re.compile(
    r"(?:^|[\s.])(\w*(?:Error|Exception): (?!Engine core initialization failed).+)", re.MULTILINE
)

Count = Annotated[int, Field(ge=1, le=2**40)]
Text = Annotated[str, Field(min_length=1)]


class VLLMOptions(EngineOptions):
    """`--engine-option KEY=VALUE`, mostly named as for `vllm serve`; None is vLLM's default but for those explained."""

    tensor_parallel_size: Count = 1  # GPUs that share one copy of the model
    pipeline_parallel_size: Count = 1
    data_parallel_size: Count = 1  # copies of the model, each answering a part of the requests
    # None: float32 on a CPU, as for `hf:`; on a GPU and for quantised checkpoints the checkpoint's own.
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    # Tokens that prompt and reply may have together; None: the model's limit.
    max_model_len: Count | None = None
    gpu_memory_utilization: Annotated[float, Field(ge=0.01, le=1)] | None = None
    # GiB of KV cache for each GPU; None: the rest of `gpu_memory_utilization`, or 2 on a CPU.
    kv_cache_gb: Annotated[float, Field(ge=0.01, le=2**40)] | None = None
    max_num_seqs: Count | None = None  # requests that are computed together
    max_num_batched_tokens: Count | None = None  # tokens of one step
    quantization: Text | None = None  # quantises the checkpoint while loading (`fp8`)
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = None
    lora: Text | None = None  # folder or repository of a LoRA adapter
    revision: Text | None = None  # branch, tag or commit of a repository
    tokenizer: Text | None = None  # another folder or repository of a tokenizer
    # Compile nothing; None is true on a CPU: compiling takes longer than it saves.
    enforce_eager: bool | None = None
    enable_prefix_caching: bool = True
    # vLLM's parser for this model's reasoning, for marks other than `<think>`.
    reasoning_parser: Text | None = None
    # Equal logits whatever the batch (GPUs of compute capability 9 and above; slower).
    batch_invariant: bool = False

    def subject(self) -> dict[str, str]:
        """Return the options that are set and change answers, for the signature."""
        subject = {}
        for key, value in self:
            if key in CHANGE_ANSWERS and value not in (None, False, "auto"):
                subject[key] = "true" if value is True else str(value)
        return subject

    def environment(self) -> dict[str, str]:
        """Return the environment of vLLM's processes, without a variable that would override the size of the cache."""
        variables = dict(os.environ)
        if self.kv_cache_gb is not None:
            variables.pop(CACHE_VARIABLE, None)
        if self.batch_invariant:
            variables["VLLM_BATCH_INVARIANT"] = "1"
        return variables


class VLLMChat:
    """A checkpoint from a folder or the Hugging Face Hub.

    Of `ChatOptions` it uses `engine_options` and `attempts`: `max_num_seqs` and the memory decide how many requests are
    computed together, and a request waits for its turn as long as it takes. `subject` names what changes answers:
    neither parallel sizes nor memory. Raises ConfigError where there is no such model, adapter or chat template, an
    option is invalid, or vLLM cannot run the model here; MissingExtraError where it is not installed."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        settings = VLLMOptions.parse(options.engine_options)
        self._settings = settings
        if find_spec("vllm") is None:  # without importing it, which takes seconds
            raise MissingExtraError(VLLM.feature, VLLM.install)
        self._where = f"vllm:{name}"
        description = describe_checkpoint("vllm", name, True, settings.revision, settings.tokenizer)
        self._special = description.tokenizer.all_special_tokens
        self.template = ChatTemplate(description.tokenizer, self._where)
        self.stop_tokens = sorted(description.stop_tokens())
        self.model = "model"  # as the server calls it
        self.subject = {"engine": "vllm", **description.identity()}
        adapter = None
        if settings.lora:
            adapter = find_adapter(settings.lora)
            check_fits(adapter, description.config, self._where)
            self.model = "adapter"
            self.subject |= adapter.identity()
        arguments = serve_arguments(settings, description, adapter)
        precision = arguments["dtype"]
        if precision == "auto":
            precision = description.precision()
        self.subject |= self.template.identity()
        self.subject["engine_version"] = f"vllm {vllm_version()}, {library_versions()}"
        self.subject["precision"] = precision
        self.subject["device"] = "cpu" if "cpu" in vllm_version() else "cuda"
        quantization = description.quantization()
        if quantization:
            self.subject["quantization"] = quantization
        self.subject |= settings.subject()
        open_files = _raise_open_files()  # a connection is an open file
        sequences = settings.max_num_seqs or USUAL_SEQS
        requests = QUEUED * sequences * settings.data_parallel_size
        concurrency = max(1, min(requests, open_files - 256))
        self._options = replace(options, concurrency=concurrency, timeout=NO_LIMIT)
        self._server: VLLMServer | None = VLLMServer(self._where, arguments, settings.environment())

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Each outcome is delivered while others are computed.

        Raises ConfigError where this model cannot follow a temperature, a response schema or thinking 0, and
        ModelCallError where vLLM's processes died; finished outcomes were delivered.
        """
        server = self._server
        if server is None:
            raise ModelCallError(f"{self._where} is closed; open it again")
        jobs, outcomes = tokenize_requests(self.template.prompt, server.context, requests, on_done)
        jobs.sort(key=lambda job: (job.prompt, job.request.id, job.request.sample))
        for job in jobs:
            self._check(job)
        wire = TokenWire(self._where, url=self._where, chat=self, jobs=jobs)
        connection = Connection(wire, self._where, "start again", lambda: self._connect(server))
        run_calls(
            connection,
            [job.request for job in jobs],
            self._options,
            lambda index, outcome: jobs[index].finish(outcome),
            calls=None,
            deadline=NO_LIMIT,
        )
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """End vLLM's processes and free their memory."""
        if self._server is not None:
            self._server.close()
        self._server = None

    def parses(self, job: TokenRequest) -> bool:
        """Whether vLLM's parser reads the reply: not where the template has switched reasoning off."""
        switched_off = job.sampling.thinking == 0 and self.template.switches
        return bool(self._settings.reasoning_parser) and not switched_off

    def answer_tokens(self, choice: Mapping[str, Any]) -> list[int]:
        """Return the tokens of an answer without the one that ended it, which may be an ordinary token."""
        tokens: list[int] = choice["token_ids"]
        stopped = choice["finish_reason"] == "stop" and tokens and tokens[-1] in self.stop_tokens
        return tokens[:-1] if stopped else tokens

    def plain(self, text: str | None) -> str:
        """Remove special tokens and outer white space from a text that vLLM's parser returned."""
        special_tokens = "|".join(map(re.escape, self._special)) or "(?!)"
        return re.sub(special_tokens, "", text or "").strip()

    def _check(self, job: TokenRequest) -> None:
        """Raise ConfigError for settings that vLLM would not follow exactly."""
        temperature = job.sampling.require_temperature()
        if 0 < temperature < LOWEST_TEMPERATURE:
            advice = "the lowest that vLLM samples with; use 0 for the most likely token"
            too_low = f"temperature {temperature:g} is below {LOWEST_TEMPERATURE}"
            raise ConfigError(f"{self._where}: {too_low}, {advice}")
        schema = job.request.response_schema
        if schema is not None and job.thinks and not self._settings.reasoning_parser:
            needed = f"the response schema {schema.name!r} needs --thinking 0 or --engine-option reasoning_parser=NAME"
            raise ConfigError(f"{self._where} reasons before it answers; {needed}")

    @asynccontextmanager
    async def _connect(self, server: VLLMServer) -> AsyncIterator[Send]:
        async with server.connect(self._options.concurrency) as session:

            async def post(
                path: str, body: Mapping[str, Any], seconds: float
            ) -> HttpAnswer | FailedCall:
                content = json.dumps(body).encode()
                answer = await exchange(session, "POST", URL + path, seconds, data=content)
                if isinstance(answer, FailedCall) or answer.status >= 500:
                    await server.check(session)
                return answer

            async def send(body: Mapping[str, Any], seconds: float) -> HttpAnswer | FailedCall:
                answer = await post("/inference/v1/generate", body, seconds)
                parser = body.get("reasoning_parser_kwargs")
                if isinstance(answer, FailedCall) or answer.status != 200 or parser is None:
                    return answer
                reply = json.loads(answer.content)
                choice = reply["choices"][0]
                choice["token_ids"] = self.answer_tokens(choice)
                if not choice["token_ids"]:
                    return answer
                chat_request = {"messages": [{"role": "user", "content": ""}], **parser}
                prompt = {
                    "generate_response": reply,
                    "prompt_token_ids": body["token_ids"],
                    "chat_request": chat_request,
                }
                parsed = await post("/v1/chat/completions/derender", prompt, seconds)
                if isinstance(parsed, FailedCall) or parsed.status != 200:
                    return parsed
                reply["parsed"] = json.loads(parsed.content)["choices"][0]["message"]
                return replace(answer, content=json.dumps(reply).encode())

            yield send


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWire(ServerWire):
    """The wire format of vLLM's route for token ids; `jobs` has the request of each call at its index."""

    chat: VLLMChat
    jobs: Sequence[TokenRequest]

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. Nothing is added to the request's sampling: no penalty, no top-k."""
        job = self.jobs[call.indexes[0]]
        sampling = job.sampling
        schema = job.request.response_schema
        parameters: dict[str, Any] = {
            **sampling.drawing(),
            "max_tokens": sampling.budget,
            "stop_token_ids": self.chat.stop_tokens,
            "detokenize": False,  # `ChatTemplate.decode` does it, as for `hf:`
        }
        if schema is not None:
            parameters["structured_outputs"] = {"json": schema.schema()}
        body: dict[str, Any] = {
            "model": self.chat.model,
            "token_ids": job.prompt.tolist(),
            "sampling_params": parameters,
        }
        if self.chat.parses(job):
            switches = reasoning_switch(sampling.thinking)
            body["reasoning_parser_kwargs"] = {"chat_template_kwargs": switches}
        elif schema is not None:
            body["reasoning_ended"] = True  # so the schema holds from the first token on
        return body

    def read(
        self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None
    ) -> CallOutcome:
        """See `WireFormat.read`."""
        job = self.jobs[call.indexes[0]]
        try:
            choice: Mapping[str, Any] = body["choices"][0]  # type: ignore[index]
            usage = Usage(len(job.prompt), int(body["usage"]["completion_tokens"]))  # type: ignore[index]
            tokens = self.chat.answer_tokens(choice)
            finish = choice["finish_reason"]
            parsed = body.get("parsed")  # type: ignore[attr-defined]
        except (LookupError, TypeError, ValueError, AttributeError):
            return malformed_answer("not an answer of vLLM", body, None, Usage(), None)
        if finish not in ("stop", "length"):
            return FailedCall(
                "engine_error", f"vLLM ended this request with {finish!r}; start again", "free"
            )
        if parsed is None:
            text, thinking = read_reply(self.chat.template.decode(tokens), job.thinks)
        else:
            text = self.chat.plain(parsed.get("content"))
            thinking = self.chat.plain(parsed.get("reasoning")) or None
        return Answer((Reply(text, finish, usage, thinking, seconds=seconds),), usage)


def _raise_open_files() -> int:
    """Raise the limit of open files as far as possible; return how many may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # -1 is no limit
    files = min(limit for limit in (hard, 2**16) if limit > 0)
    if 0 < soft < files:
        soft = files
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return files


def serve_arguments(
    settings: VLLMOptions, description: Description, adapter: Adapter | None
) -> dict[str, Any]:
    """Return the arguments of vLLM's server by name; vLLM's defaults hold for all that are not named."""
    cpu = "cpu" in vllm_version()
    cache = settings.kv_cache_gb
    if cache is None and cpu and settings.gpu_memory_utilization is None:
        if not os.environ.get(CACHE_VARIABLE):
            cache = 2.0  # vLLM would take nearly all memory
    dtype = "auto"
    if cpu or description.precision() == "float32":
        # vLLM's `auto` silently rounds float32 to 16 bits.
        if not description.quantization() and not settings.quantization:
            dtype = "float32"
    options = settings.model_dump(
        exclude={"kv_cache_gb", "lora", "revision", "batch_invariant"}, exclude_none=True
    )
    arguments: dict[str, Any] = {
        "dtype": dtype,
        "enforce_eager": cpu,
        **options,
        "model": description.location,
        "served_model_name": "model",
        "enable_scale_out": True,  # the routes for token ids
        "load_format": "safetensors",  # otherwise vLLM reads pickled weights where there are no others
        "generation_config": "vllm",
        "trust_remote_code": False,
        "seed": 0,
        "disable_log_stats": True,
        "disable_uvicorn_access_log": True,
        "revision": description.commit,
        "kv_cache_memory_bytes": cache and int(cache * 2**30),
    }
    if adapter is not None:
        limit = next(limit for limit in RANKS if limit >= adapter.rank)
        arguments["enable_lora"] = True
        arguments["max_loras"] = 1
        arguments["max_lora_rank"] = limit
        arguments["lora_modules"] = json.dumps({"name": "adapter", "path": str(adapter.folder)})
    return {key: value for key, value in arguments.items() if value is not None}


def vllm_version() -> str:
    """Return vLLM's version without importing it: `0.32.0`, or `0.32.0+cpu` for a CPU build."""
    try:
        return version("vllm")
    except ModuleNotFoundError:
        return f"{version('vllm-cpu')}+cpu"


class VLLMServer:
    """A server of vLLM that answers. Where VLLM_LOGGING_LEVEL is set, its log goes to the terminal.

    It listens on a Unix socket in a folder that only this user can enter: a port could be taken, and vLLM's API key
    does not guard all of its routes (`/invocations` answers without it). `context`: tokens of prompt and reply
    together. Raises ConfigError where vLLM cannot run the model with these arguments; no process of it stays then.
    """

    def __init__(
        self, where: str, arguments: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        self._where = where
        self._keeps_log = False  # an error names the log
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="h2htalk-vllm-"))
        except OSError as error:
            raise ConfigError(
                f"vllm: cannot write temporary files: {error}; free disk space, or set TMPDIR"
            ) from error
        self._log = None if "VLLM_LOGGING_LEVEL" in os.environ else self._folder / "vllm.log"
        self._socket = str(self._folder / "socket")
        command = [sys.executable, "-m", MODULE, "--uds", self._socket]
        for key, value in arguments.items():
            name = key.replace("_", "-")
            if value is True:
                command.append(f"--{name}")
            elif value is False:
                command.append(f"--no-{name}")
            else:
                command += [f"--{name}", str(value)]
        supervised = [sys.executable, "-I", "-S", supervisor.__file__]
        supervised += [str(os.getpid()), str(self._folder), *command]
        with nullcontext() if self._log is None else self._log.open("wb") as output:
            self._process = subprocess.Popen(
                supervised,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                # vLLM never removes its other sockets, so they go into the folder, too.
                env={**environment, **ENVIRONMENT, "VLLM_RPC_BASE_PATH": str(self._folder)},
                start_new_session=True,
            )
        atexit.register(self.close)  # where the caller does not close the engine
        try:
            if sys.stderr.isatty():
                sys.stderr.write("vllm  starting the engine; a large model takes minutes\n")
            self.context = run_alone(self._started)
        except BaseException:  # raised again; no process of vLLM may stay, also after Ctrl-C
            self.close()
            raise

    def connect(self, connections: int = 1) -> aiohttp.ClientSession:
        """Open a pool of so many connections, in a running event loop."""
        return open_session(connections, 60.0, {"content-type": "application/json"}, self._socket)

    async def check(self, session: aiohttp.ClientSession) -> None:
        """Raise ModelCallError where the engine has died: nothing answers then, or it answers that it is unhealthy."""
        health = await exchange(session, "GET", f"{URL}/health", 60.0)
        if not isinstance(health, HttpAnswer) or health.status != 200:
            with suppress(subprocess.TimeoutExpired):  # its log is complete when it has ended
                await asyncio.to_thread(self._process.wait, supervisor.GRACE)
            advice = "finished answers are kept; start again"
            raise ModelCallError(f"{self._where}: vLLM died ({advice}){self._log_end()}")

    def close(self) -> None:
        """End all processes of vLLM. Calling it twice does no harm."""
        atexit.unregister(self.close)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if not self._keeps_log:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _started(self) -> int:
        """Wait until the server answers; return the model's context."""
        async with self.connect() as session:
            while self._process.poll() is None:
                models = await exchange(session, "GET", f"{URL}/v1/models", 60.0)
                if isinstance(models, HttpAnswer) and models.status == 200:
                    return int(json.loads(models.content)["data"][0]["max_model_len"])
                await asyncio.sleep(0.1)
        raise ConfigError(f"{self._where}: vLLM cannot start{self._log_end()}")

    def _log_end(self) -> str:
        """Return the last error of the log, its path and its last lines, for a message; empty without a log."""
        if self._log is None:
            return ""
        self._keeps_log = True
        text = self._log.read_bytes()[-(2**18) :].decode("utf-8", "replace")
        message = f"; vLLM's log is {self._log} and ends:"
        causes = _CAUSE.findall(text)
        if causes:
            message = f": {causes[-1]}{message}"
        return "\n".join([message, *text.splitlines()[-20:]])

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
from pydantic import BaseModel, ConfigDict, Field

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.live_calls import Connection, run_alone, run_calls
from h2htalk.chat.local.chat_template import ChatTemplate, TokenRequest, read_reply, reasoning_switch, tokenize_requests
from h2htalk.chat.local.checkpoints import Description, describe_checkpoint, hash_files, library_versions
from h2htalk.chat.protocol import Answer, Arrived, Call, FailedCall, Found, OnDone, Outcome, Reply, Request, Send
from h2htalk.chat.server import ServerWire, exchange, open_session
from h2htalk.chat.vllm import supervisor
from h2htalk.chat.wires import malformed_answer
from h2htalk.data.records import read_record
from h2htalk.data.responses import Usage
from h2htalk.errors import ConfigError, MissingExtraError, ModelCallError

INSTALL_VLLM = "pip install 'h2htalk[vllm]' in an environment of its own (CPU: docs/how-to/vllm-without-a-gpu.md)"
CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
# vLLM silently raises lower temperatures to this one.
LOWEST_TEMPERATURE = 0.01
# Requests at the server for each that a copy of the model computes (by default up to 512), so that it never waits.
QUEUED, USUAL_SEQS = 2, 512
NO_LIMIT = 604_800.0  # seconds that a request may wait for its turn and its answer
# Keys whose value changes the answers by more than rounding.
CHANGE_ANSWERS = {"quantization", "kv_cache_dtype", "reasoning_parser", "tokenizer", "batch_invariant"}

# What `vllm serve` runs; that command itself does not start with the distribution `vllm-cpu`.
MODULE = "vllm.entrypoints.launchers.api_server.entry"
URL = "http://vllm"
# No telemetry; a process that is forked after CUDA was initialised dies.
ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
_CAUSE = re.compile(r"(?:^|[\s.])(\w*(?:Error|Exception): (?!Engine core initialization failed).+)", re.MULTILINE)

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # the limits that vLLM can be started with

Count = Annotated[int, Field(ge=1, le=2**40)]
Text = Annotated[str, Field(min_length=1)]


class VLLMOptions(BaseModel):
    """`--engine-option KEY=VALUE`, mostly named as for `vllm serve`; None is vLLM's default but for those explained."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    tensor_parallel_size: Count = 1  # GPUs that share one copy of the model
    pipeline_parallel_size: Count = 1
    data_parallel_size: Count = 1  # copies of the model, each answering a part of the requests
    # None: float32 on a CPU, as for `hf:`; on a GPU and for quantised checkpoints the checkpoint's own.
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    max_model_len: Count | None = None  # tokens that prompt and reply may have together; None: the model's limit
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
    enforce_eager: bool | None = None  # compile nothing; None is true on a CPU: compiling takes longer than it saves
    enable_prefix_caching: bool = True
    reasoning_parser: Text | None = None  # vLLM's parser for this model's reasoning, for marks other than `<think>`
    batch_invariant: bool = False  # equal logits whatever the batch (GPUs of compute capability 9 and above; slower)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> VLLMOptions:
        """Parse the options that the user gave; raises ConfigError for an unknown key or an invalid value."""
        known = f"choose from {', '.join(sorted(cls.model_fields))}"
        return read_record(cls, given, "--engine-option", error=ConfigError, as_python=True, unknown=known)

    def subject(self) -> dict[str, str]:
        """Return the options that are set and change answers, for the signature."""
        values = {key: value for key, value in self if key in CHANGE_ANSWERS and value not in (None, False, "auto")}
        return {key: "true" if value is True else str(value) for key, value in values.items()}

    def environment(self) -> dict[str, str]:
        """Return the environment of vLLM's processes, without a variable that would override the size of the cache."""
        kept = {k: v for k, v in os.environ.items() if self.kv_cache_gb is None or k != CACHE_VARIABLE}
        return kept | ({"VLLM_BATCH_INVARIANT": "1"} if self.batch_invariant else {})


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter on disk."""

    name: str
    folder: Path
    rank: int

    def identity(self) -> dict[str, str]:
        """Return `lora` (its name) and `lora_sha256`, over weights and configuration (which holds the scaling)."""
        return {"lora": self.name, "lora_sha256": hash_files([self.folder / CONFIG, self.folder / WEIGHTS])}


def find_adapter(given: str) -> Adapter:
    """Find the adapter in a folder, or in a repository of the Hub (downloaded unless it is in the cache). Raises
    ConfigError where there is none, it is not a LoRA, or its weights are not safetensors."""
    from huggingface_hub import snapshot_download

    folder, name = Path(given).expanduser(), given
    try:
        if folder.exists() or given.count("/") != 1 or given[0] in "./~":
            name = folder.resolve().name
        else:
            folder = Path(snapshot_download(given, allow_patterns=[CONFIG, WEIGHTS]))
        (folder / WEIGHTS).open("rb").close()
        config = json.loads((folder / CONFIG).read_bytes())
        kind, rank = config["peft_type"], config["r"]
        if kind != "LORA" or type(rank) is not int or not 1 <= rank <= RANKS[-1]:
            raise ValueError(f"a {kind} of rank {rank}, not a LORA of 1 to {RANKS[-1]}")
    except (OSError, ValueError, LookupError, TypeError) as error:  # the Hub's errors are OSErrors
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".")
        advice = f"name OWNER/NAME on the Hub, or a folder that holds {CONFIG} and {WEIGHTS} of a LoRA"
        raise ConfigError(f"lora={name}: no adapter ({reason}); {advice} (no pickle is read)") from error
    return Adapter(name, folder.resolve(), rank)


def check_fits(adapter: Adapter, model_config: Any, where: str) -> None:
    """Raise ConfigError unless the model has every matrix of the adapter, with the same shape and rank.

    vLLM silently leaves out modules whose names do not match, and scales the others by the configuration's rank. Models
    that transformers cannot build from their configuration alone (multimodal, unknown) are left to vLLM.
    """
    import torch
    from safetensors import SafetensorError, safe_open
    from transformers import AutoModelForCausalLM

    if model_config.get_text_config() is not model_config:
        return
    try:
        with torch.device("meta"):  # shapes only: no memory, no weights
            model = AutoModelForCausalLM.from_config(model_config, trust_remote_code=False)
    except (ValueError, KeyError, ImportError, RuntimeError, AttributeError, TypeError):
        return
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    try:
        with safe_open(adapter.folder / WEIGHTS, framework="numpy") as tensors:
            # vLLM checks others, such as embeddings.
            names = [one for one in sorted(tensors.keys()) if one.endswith((".lora_A.weight", ".lora_B.weight"))]
            found = {name: tuple(tensors.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise ConfigError(f"lora={adapter.name}: {WEIGHTS} cannot be read: {error}; copy it again") from error
    problems = [] if found else ["it holds no LoRA matrix"]
    for name, shape in found.items():
        module, _, side = name.removeprefix("base_model.model.").partition(".lora_")
        outputs, inputs = (*shapes.get(f"{module}.weight", ()), 0, 0)[:2]
        wanted = (adapter.rank, inputs) if side == "A.weight" else (outputs, adapter.rank)
        if shape != wanted and ".experts" not in module:  # vLLM checks joined matrices of experts
            fits = f"{wanted} fits" if outputs else "the model has none"
            problems.append(f"its {name.removesuffix('.weight')} is a matrix of {shape}, where {fits}")
    if problems:
        advice = "name the model that this adapter was trained on, and copy all files of one training"
        raise ConfigError(f"lora={adapter.name}: does not fit {where}: {problems[0]}; {advice}")


class VLLMChat:
    """A checkpoint from a folder or the Hugging Face Hub.

    Of `ChatOptions` it uses `engine_options` and `attempts`: `max_num_seqs` and the memory decide how many requests are
    computed together, and a request waits for its turn as long as it takes. `subject` names what changes answers:
    neither parallel sizes nor memory. Raises ConfigError where there is no such model, adapter or chat template, an
    option is invalid, or vLLM cannot run the model here; MissingExtraError where it is not installed."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        own = self._own = VLLMOptions.parse(options.engine_options)
        if find_spec("vllm") is None:  # without importing it, which takes seconds
            raise MissingExtraError("vllm:", INSTALL_VLLM)
        self._where = f"vllm:{name}"
        description = describe_checkpoint("vllm", name, True, own.revision, own.tokenizer)
        self._special = description.tokenizer.all_special_tokens
        self.template = ChatTemplate(description.tokenizer, self._where)
        self.stop_tokens = sorted(description.stop_tokens())
        adapter = find_adapter(own.lora) if own.lora else None
        if adapter is not None:
            check_fits(adapter, description.config, self._where)
        self.model = "adapter" if adapter else "model"  # as the server calls it
        arguments = serve_arguments(own, description, adapter)
        self.subject = {
            "engine": "vllm",
            **description.identity(),
            **(adapter.identity() if adapter else {}),
            **self.template.identity(),
            "engine_version": f"vllm {vllm_version()}, {library_versions()}",
            "precision": description.precision() if arguments["dtype"] == "auto" else arguments["dtype"],
            "device": "cpu" if "cpu" in vllm_version() else "cuda",
            **({"quantization": method} if (method := description.quantization()) else {}),
            **own.subject(),
        }
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # a connection is an open file; -1 is no limit
        files = min(limit for limit in (hard, 2**16) if limit > 0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files if 0 < soft < files else soft, hard))
        places = QUEUED * (own.max_num_seqs or USUAL_SEQS) * own.data_parallel_size
        self._options = replace(options, concurrency=max(1, min(places, files - 256)), timeout=NO_LIMIT)
        self._server: VLLMServer | None = VLLMServer(self._where, arguments, own.environment())

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Answer all requests; see `Chat.complete`. Each outcome is delivered while others are computed. Raises
        ConfigError where this model cannot follow a temperature, a response schema or thinking 0, and ModelCallError
        where vLLM's processes died; finished outcomes were delivered."""
        if (server := self._server) is None:
            raise ModelCallError(f"{self._where} is closed; open it again")
        jobs, outcomes = tokenize_requests(self.template.prompt, server.context, requests, on_done)
        jobs.sort(key=lambda job: (job.prompt, job.request.id, job.request.sample))
        for job in jobs:
            self._check(job)
        wire = TokenWire(self._where, url=self._where, chat=self, jobs=jobs)
        connection = Connection(wire, self._where, "start again", lambda: self._connect(server))
        asked, on_call = [job.request for job in jobs], lambda place, outcome: jobs[place].finish(outcome)
        run_calls(connection, asked, self._options, on_call, calls=None, deadline=NO_LIMIT)
        return [outcomes[index] for index in range(len(requests))]

    def close(self) -> None:
        """End vLLM's processes and free their memory."""
        if self._server is not None:
            self._server.close()
        self._server = None

    def parses(self, job: TokenRequest) -> bool:
        """Whether vLLM's parser reads the reply: not where the template has switched reasoning off."""
        return bool(self._own.reasoning_parser) and not (job.sampling.thinking == 0 and self.template.switches)

    def answer_tokens(self, choice: Mapping[str, Any]) -> list[int]:
        """Return the tokens of an answer without the one that ended it, which may be an ordinary token."""
        tokens: list[int] = choice["token_ids"]
        stopped = choice["finish_reason"] == "stop" and tokens and tokens[-1] in self.stop_tokens
        return tokens[:-1] if stopped else tokens

    def plain(self, text: str | None) -> str:
        """Remove special tokens and outer white space from a text that vLLM's parser returned."""
        return re.sub("|".join(map(re.escape, self._special)) or "(?!)", "", text or "").strip()

    def _check(self, job: TokenRequest) -> None:
        """Raise ConfigError for settings that vLLM would not follow exactly."""
        if 0 < job.sampling.require_temperature() < LOWEST_TEMPERATURE:
            lowest = f"below {LOWEST_TEMPERATURE}, the lowest that vLLM samples with; use 0 for the most likely token"
            raise ConfigError(f"{self._where}: temperature {job.sampling.temperature:g} is {lowest}")
        schema = job.request.response_schema
        if schema is not None and job.thinks and not self._own.reasoning_parser:
            needed = f"the response schema {schema.name!r} needs --thinking 0 or --engine-option reasoning_parser=NAME"
            raise ConfigError(f"{self._where} reasons before it answers; {needed}")

    @asynccontextmanager
    async def _connect(self, server: VLLMServer) -> AsyncIterator[Send]:
        async with server.connect(self._options.concurrency) as session:

            async def post(path: str, body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
                arrived = await exchange(session, "POST", URL + path, seconds, data=json.dumps(body).encode())
                if isinstance(arrived, FailedCall) or arrived.status >= 500:
                    await server.check(session)
                return arrived

            async def send(body: Mapping[str, Any], seconds: float) -> Arrived | FailedCall:
                arrived = await post("/inference/v1/generate", body, seconds)
                parser = body.get("reasoning_parser_kwargs")
                if isinstance(arrived, FailedCall) or arrived.status != 200 or parser is None:
                    return arrived
                reply = json.loads(arrived.content)
                reply["choices"][0]["token_ids"] = tokens = self.answer_tokens(reply["choices"][0])
                if not tokens:
                    return arrived
                ask = {"messages": [{"role": "user", "content": ""}], **parser}
                prompt = {"generate_response": reply, "prompt_token_ids": body["token_ids"], "chat_request": ask}
                parsed = await post("/v1/chat/completions/derender", prompt, seconds)
                if isinstance(parsed, FailedCall) or parsed.status != 200:
                    return parsed
                reply["parsed"] = json.loads(parsed.content)["choices"][0]["message"]
                return replace(arrived, content=json.dumps(reply).encode())

            yield send


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWire(ServerWire):
    """The wire format of vLLM's route for token ids; `jobs` has the place of each call."""

    chat: VLLMChat
    jobs: Sequence[TokenRequest]

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`. Nothing is added to the request's sampling: no penalty, no top-k."""
        job = self.jobs[call.indexes[0]]
        sampling, schema = job.sampling, job.request.response_schema
        parameters: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "max_tokens": sampling.budget,
            "stop_token_ids": self.chat.stop_tokens,
            "detokenize": False,  # `ChatTemplate.decode` does it, as for `hf:`
        }
        if schema is not None:
            parameters["structured_outputs"] = {"json": schema.schema()}
        tokens = job.prompt.tolist()
        body: dict[str, Any] = {"model": self.chat.model, "token_ids": tokens, "sampling_params": parameters}
        if self.chat.parses(job):
            body["reasoning_parser_kwargs"] = {"chat_template_kwargs": reasoning_switch(sampling.thinking)}
        elif schema is not None:
            body["reasoning_ended"] = True  # so the schema holds from the first token on
        return body

    def read(self, body: object, call: Call, request_id: str | None = None, seconds: float | None = None) -> Found:
        """See `WireFormat.read`."""
        job = self.jobs[call.indexes[0]]
        try:
            choice: Mapping[str, Any] = body["choices"][0]  # type: ignore[index]
            usage = Usage(len(job.prompt), int(body["usage"]["completion_tokens"]))  # type: ignore[index]
            tokens, finish, parsed = self.chat.answer_tokens(choice), choice["finish_reason"], body.get("parsed")  # type: ignore[attr-defined]
        except (LookupError, TypeError, ValueError, AttributeError):
            return malformed_answer("not an answer of vLLM", body, None, Usage(), None)
        if finish not in ("stop", "length"):
            return FailedCall("engine_error", f"vLLM ended this request with {finish!r}; start again", "free")
        if parsed is None:
            text, thinking = read_reply(self.chat.template.decode(tokens), job.thinks)
        else:
            text, thinking = self.chat.plain(parsed.get("content")), self.chat.plain(parsed.get("reasoning")) or None
        return Answer((Reply(text, finish, usage, thinking, seconds=seconds),), usage)


def serve_arguments(own: VLLMOptions, description: Description, adapter: Adapter | None) -> dict[str, Any]:
    """Return the arguments of vLLM's server by name; the others keep vLLM's defaults."""
    cpu, cache = "cpu" in vllm_version(), own.kv_cache_gb
    if cache is None and cpu and own.gpu_memory_utilization is None and not os.environ.get(CACHE_VARIABLE):
        cache = 2.0  # vLLM would take nearly all memory
    full = cpu or description.precision() == "float32"  # vLLM's `auto` silently rounds float32 to 16 bits
    given: dict[str, Any] = {
        "dtype": "float32" if full and not (description.quantization() or own.quantization) else "auto",
        "enforce_eager": cpu,
        **own.model_dump(exclude={"kv_cache_gb", "lora", "revision", "batch_invariant"}, exclude_none=True),
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
        module = json.dumps({"name": "adapter", "path": str(adapter.folder)})
        given |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": limit, "lora_modules": module}
    return {key: value for key, value in given.items() if value is not None}


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

    def __init__(self, where: str, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._where = where
        self._named = False  # an error names the log, which is then kept
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="h2htalk-vllm-"))
        except OSError as error:
            raise ConfigError(f"vllm: cannot write temporary files: {error}; free disk space, or set TMPDIR") from error
        self._log = None if "VLLM_LOGGING_LEVEL" in os.environ else self._folder / "vllm.log"
        self._socket = str(self._folder / "socket")
        command = [sys.executable, "-m", MODULE, "--uds", self._socket]
        for key, value in arguments.items():
            name = key.replace("_", "-")
            command += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
        supervised = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(self._folder), *command]
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
        if not isinstance(health, Arrived) or health.status != 200:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, supervisor.GRACE)  # then its log is complete
            raise ModelCallError(f"{self._where}: vLLM died (finished answers are kept; start again){self._log_end()}")

    def close(self) -> None:
        """End all processes of vLLM. Calling it twice does no harm."""
        atexit.unregister(self.close)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if not self._named:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _started(self) -> int:
        """Wait until the server answers; return the model's context."""
        async with self.connect() as session:
            while self._process.poll() is None:
                models = await exchange(session, "GET", f"{URL}/v1/models", 60.0)
                if isinstance(models, Arrived) and models.status == 200:
                    return int(json.loads(models.content)["data"][0]["max_model_len"])
                await asyncio.sleep(0.1)
        raise ConfigError(f"{self._where}: vLLM cannot start{self._log_end()}")

    def _log_end(self) -> str:
        """Return the last error of the log, its path and its last lines, for a message; empty without a log."""
        if self._log is None:
            return ""
        self._named = True
        text = self._log.read_bytes()[-(2**18) :].decode("utf-8", "replace")
        cause = "".join(f": {found}" for found in _CAUSE.findall(text)[-1:])
        return "\n".join((f"{cause}; vLLM's log is {self._log} and ends:", *text.splitlines()[-20:]))

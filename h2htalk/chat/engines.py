"""The table of engines, their options, and the identity of the model that they ask."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from h2htalk.data.files import reading, sha256_of
from h2htalk.data.model_names import without_path
from h2htalk.errors import ConfigError, quoted, suggest
from h2htalk.extras import EMBEDDED_MODEL, LOCAL_MODEL, VLLM, Requirement

if TYPE_CHECKING:
    from h2htalk.chat.protocol import Chat
    from h2htalk.chat.store.stage_calls import StageCalls
    from h2htalk.chat.wire_formats import WireFormat


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to run an engine. Only `engine_options` may change its answers; the engine's `subject` then names them."""

    concurrency: int = 64  # requests in flight at once
    timeout: float = 120.0  # seconds one attempt may take
    attempts: int = 4  # tries a request, the first included
    deadline: float = 900.0  # seconds one request to a hosted API may take in all, tries and waits between included
    # The engine's own settings, by name (`vllm`: `dtype`, `lora`, ...).
    engine_options: Mapping[str, str] = field(default_factory=dict)
    download: bool = False  # fetch a model of the Hugging Face Hub that is not in the local cache
    # Where paid calls are reserved before they are sent, and their replies stored; None keeps them in memory.
    calls: StageCalls | None = None
    batch: bool = False  # send everything as batch jobs
    function: Callable[..., Any] | None = None  # the function that answers for `python`

    def __post_init__(self) -> None:
        counts_valid = self.concurrency >= 1 and self.attempts >= 1
        if not counts_valid or not self.timeout > 0 or not self.deadline > 0:
            raise ConfigError(
                "concurrency and attempts must be 1 or more, timeout and deadline above 0 seconds"
            )


_SETTINGS = ("config.json", "gliner_config.json", "meta.json")


def model_identity(model: str) -> str:
    """Return what the results depend on: the model's name (`model_name`), and the content of a script or a folder.

    Raises ConfigError where that cannot be read.
    """
    name, path = _name_and_path(model)
    if path is None:
        return name
    digest = folder_sha256(path) if path.is_dir() else sha256_of(path)
    return f"{name}, sha256 {digest[:16]}"


def model_name(model: str) -> str:
    """Return `ENGINE:NAME` without a path or an address; of a file or a folder the last part."""
    name, _ = _name_and_path(model)
    return without_path(name)


def _name_and_path(model: str) -> tuple[str, Path | None]:
    """Return a model's name for people, and the script or the folder that it is."""
    engine, _, name = model.partition(":")
    kind = model_kind(engine)
    if kind == "file" and name:
        return f"{engine}:{Path(name).name}", Path(name)
    address = re.search("@?https?:", name, re.IGNORECASE)
    if address is not None:  # it may hold a password
        return f"{engine}:{name[: address.start()]}".rstrip(":"), None
    if kind == "folder" and name:
        folder = Path(name).expanduser()
        if any((folder / settings).is_file() for settings in _SETTINGS):
            return f"{engine}:{folder.resolve().name}", folder
    return model, None


def folder_sha256(folder: Path) -> str:
    """Hash the names and sizes of a folder's files, and its settings; weights are too large to read."""
    digest = hashlib.sha256()
    with reading(folder, ConfigError):
        sizes = {path: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    for path, size in sizes.items():
        content = sha256_of(path) if path.suffix == ".json" else ""
        digest.update(f"{path.name}\0{size}\0{content}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: what answers requests, and what the rest of the package must know about it."""

    # The part of a model's name before the colon.
    name: str
    # `module:Class`, which is called as `Class(model_name, options)`.
    path: str
    _: KW_ONLY
    # Whether every call costs money, so that each is reserved in the call store. Hosted engines have batch jobs.
    hosted: bool = False
    # Whether it runs on the user's own machine and costs nothing but time.
    local: bool = False
    # Temperature, top_p and seed are `taken`, may be left out (`optional`), or never taken (`none`: it uses its own).
    sampling: str = "taken"
    # Whether a model of it may reason before it answers.
    reasons: bool = True
    # `module:Class` whose `parse` reads the engine's own options.
    options: str = ""
    # `module:Class` that builds and reads the calls of a hosted API.
    wire: str = ""
    # What stands after the colon: a `name`, a `folder` or a name on the Hub, a `file`, or a name with a `url`.
    model_is: str = "name"
    # Whether it makes replies match a response schema.
    schemas: bool = True
    # Whether it is too small for tasks in several steps. `compose` asks it for replies as plain text only.
    small: bool = False
    # Whether it fetches a model of the Hub. It does so only where `ChatOptions.download` is set.
    downloads: bool = False
    # The distributions that answer or ask, whose versions a run records.
    packages: tuple[str, ...] = ()
    # What it needs beside a plain installation.
    needs: Requirement | None = None

    def check_options(self, engine_options: Mapping[str, str]) -> None:
        """Raise ConfigError for options that this engine does not have, or that are invalid."""
        if self.options:
            resolve_name(self.options).parse(engine_options)
        elif engine_options:
            engines = ", ".join(engine.name for engine in ENGINES.values() if engine.options)
            raise ConfigError(
                f"{self.name} has no engine options ({', '.join(engine_options)}); {engines} have some"
            )

    def option_names(self) -> frozenset[str]:
        """The names of its engine options."""
        return frozenset(resolve_name(self.options).model_fields) if self.options else frozenset()

    def form_subject(self, engine_options: Mapping[str, str]) -> dict[str, str]:
        """Return the entry of a signature about the form of requests (`WireOptions.subject`)."""
        from h2htalk.chat.wire_options import WireOptions

        if not self.options:
            return {}
        kind = resolve_name(self.options)
        return kind.parse(engine_options).subject() if issubclass(kind, WireOptions) else {}

    def open_wire(self, model_name: str) -> WireFormat:
        """Return the wire format of a hosted API, without a key or a connection."""
        return cast("WireFormat", resolve_name(self.wire)(model_name))


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            "embedded",
            "h2htalk.chat.local.embedded:EmbeddedChat",
            local=True,
            reasons=False,
            schemas=False,
            small=True,
            packages=("openvino-genai", "openvino"),
            needs=EMBEDDED_MODEL,
        ),
        Engine(
            "hf",
            "h2htalk.chat.local.hf:TransformersChat",
            local=True,
            model_is="folder",
            schemas=False,
            downloads=True,
            packages=("transformers", "torch"),
            needs=LOCAL_MODEL,
        ),
        Engine(
            "vllm",
            "h2htalk.chat.vllm.engine:VLLMChat",
            local=True,
            options="h2htalk.chat.vllm.engine:VLLMOptions",
            model_is="folder",
            packages=("vllm", "transformers", "torch"),
            needs=VLLM,
        ),
        Engine(
            "openai",
            "h2htalk.chat.hosted.hosted_chat:OpenAIChat",
            hosted=True,
            sampling="optional",
            options="h2htalk.chat.wire_options:OpenAIOptions",
            wire="h2htalk.chat.openai_wire:OpenAIWire",
            packages=("openai",),
        ),
        Engine(
            "anthropic",
            "h2htalk.chat.hosted.hosted_chat:AnthropicChat",
            hosted=True,
            sampling="none",
            options="h2htalk.chat.wire_options:AnthropicOptions",
            wire="h2htalk.chat.anthropic_wire:AnthropicWire",
            packages=("anthropic",),
        ),
        Engine(
            "server",
            "h2htalk.chat.server:ServerChat",
            sampling="optional",
            options="h2htalk.chat.wire_options:ServerOptions",
            model_is="url",
            packages=("aiohttp",),
        ),
        Engine("scripted", "h2htalk.chat.scripted:ScriptedChat", local=True, model_is="file"),
        Engine(
            "python",
            "h2htalk.chat.function_chat:FunctionChat",
            sampling="none",
            reasons=False,
            schemas=False,
        ),
    )
}


def open_chat(model: str, options: ChatOptions | None = None) -> Chat:
    """Open `ENGINE` or `ENGINE:NAME`, such as `embedded`, `hf:PATH`, `server:MODEL@URL`, `scripted:FILE`.

    Raises ConfigError where there is no such engine, or the model cannot be opened; MissingExtraError where the
    engine's packages are not installed.
    """
    engine, name = parse_model(model)
    options = options or ChatOptions()
    engine.check_options(options.engine_options)
    if options.batch:
        require_batches(engine)
    return cast("Chat", resolve_name(engine.path)(name, options))


def parse_model(model: str, *pseudo_engines: str) -> tuple[Engine, str]:
    """Split a model such as `hf:PATH` into its engine and its name.

    Raises ConfigError for another engine; it names the choices, the caller's `pseudo_engines` included.
    """
    name, _, model_name = model.partition(":")
    if name in ENGINES:
        return ENGINES[name], model_name
    choices = (*ENGINES, *pseudo_engines)
    suggestion = suggest(name, choices) or "write ENGINE:NAME and "
    raise ConfigError(
        f"unknown engine {quoted(name)}; {suggestion}choose from {', '.join(choices)}"
    )


def require_model(model: str, *pseudo_engines: str) -> None:
    """Raise MissingExtraError where the packages of a model's engine are not installed, and ConfigError for an unknown
    engine (the caller answers for `pseudo_engines`) or a hosted one without its key. Nothing is opened, read or sent.
    """
    if model.partition(":")[0] in pseudo_engines:
        return
    engine, _ = parse_model(model, *pseudo_engines)
    if engine.needs is not None:
        engine.needs.require()
    if engine.hosted:
        resolve_name(engine.path).read_environment()


def model_kind(engine: str) -> str:
    """Return what a model's name is for an engine (`Engine.model_is`)."""
    return ENGINES[engine].model_is if engine in ENGINES else "name"


def engine_names(separator: str = " and ", /, **fields: object) -> str:
    """List the engines whose record has these values, for messages: `openai and anthropic`."""
    names = []
    for name, engine in ENGINES.items():
        if all(getattr(engine, key) == value for key, value in fields.items()):
            names.append(name)
    return separator.join(names)


def require_batches(engine: Engine, advice: str = "") -> None:
    """Raise ConfigError for an engine that has no batch jobs."""
    if not engine.hosted:
        raise ConfigError(f"{engine.name} has no batches; {engine_names(hosted=True)} have{advice}")

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
from h2htalk.errors import ConfigError, quoted, suggest

if TYPE_CHECKING:
    from h2htalk.chat.protocol import Chat
    from h2htalk.chat.store.call_store import StageCalls
    from h2htalk.chat.wires import WireFormat


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to run an engine. Only `engine_options` may change its answers; the engine's `subject` then names them."""

    concurrency: int = 64  # requests in flight at once
    timeout: float = 120.0  # seconds one attempt may take
    attempts: int = 4  # tries a request, the first included
    deadline: float = 900.0  # seconds one request to a hosted API may take in all, tries and waits between included
    engine_options: Mapping[str, str] = field(default_factory=dict)  # its own, by name (`vllm`: `dtype`, `lora`, ...)
    download: bool = False  # fetch a model of the Hugging Face Hub that is not in the local cache
    # Where paid calls are reserved before they are sent, and their replies stored; None keeps them in memory.
    calls: StageCalls | None = None
    batch: bool = False  # send everything as batch jobs
    function: Callable[..., Any] | None = None  # of `python`: what answers

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout > 0 or not self.deadline > 0:
            raise ConfigError("concurrency and attempts must be 1 or more, timeout and deadline above 0 seconds")


_SETTINGS = ("config.json", "gliner_config.json", "meta.json")


def model_identity(model: str) -> str:
    """What the results depend on: the model's name (`model_name`), and the content of a script or a folder. Raises
    ConfigError where that cannot be read."""
    name, path = _named(model)
    return f"{name}, sha256 {(_folder_sha256 if path.is_dir() else sha256_of)(path)[:16]}" if path else name


def model_name(model: str) -> str:
    """`ENGINE:NAME` without a path or an address: the name of a script's file or a model's folder."""
    return _named(model)[0]


def _named(model: str) -> tuple[str, Path | None]:
    """A model's name for people, and the script or the folder that it is."""
    engine, _, name = model.partition(":")
    kind = model_kind(engine)
    if kind == "file" and name:
        return f"{engine}:{Path(name).name}", Path(name)
    if (address := re.search("@?https?:", name, re.IGNORECASE)) is not None:  # it may hold a password
        return f"{engine}:{name[: address.start()]}".rstrip(":"), None
    if kind == "folder" and name and any(((folder := Path(name).expanduser()) / one).is_file() for one in _SETTINGS):
        return f"{engine}:{folder.resolve().name}", folder
    return model, None


def _folder_sha256(folder: Path) -> str:
    """A hash of the names and sizes of a folder's files, and of its settings; weights are too large to read."""
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

    name: str  # the part of a model's name before the colon
    path: str  # `module:Class`, called as `Class(model_name, options)`
    _: KW_ONLY
    hosted: bool = False  # every call costs money, so each is reserved in the call store; there are batch jobs
    local: bool = False  # it runs on the user's own machine and costs nothing but time
    # Temperature, top_p and seed are `taken`, may be left out (`optional`), or never taken (`none`: it uses its own).
    sampling: str = "taken"
    reasons: bool = True  # a model of it may reason before it answers
    options: str = ""  # `module:Class` whose `parse` reads the engine's own options
    wire: str = ""  # `module:Class` that builds and reads the calls of a hosted API
    model_is: str = "name"  # after the colon: a `name`, a `folder` or name on the Hub, a `file`, a name with a `url`
    schemas: bool = True  # it makes replies match a response schema
    small: bool = False  # too small for tasks in several steps; compose asks it for replies as plain text only
    downloads: bool = False  # it fetches a model of the Hub only where `ChatOptions.download` is set
    packages: tuple[str, ...] = ()  # the distributions that answer or ask, whose versions a run records

    def check_options(self, given: Mapping[str, str]) -> None:
        """Raise ConfigError for options that this engine does not have, or that cannot be."""
        if self.options:
            resolve_name(self.options).parse(given)
        elif given:
            names = " and ".join(engine.name for engine in ENGINES.values() if engine.options)
            raise ConfigError(f"{self.name} has no engine options ({', '.join(given)}); {names} has")

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
        ),
        Engine(
            "hf",
            "h2htalk.chat.local.hf:TransformersChat",
            local=True,
            model_is="folder",
            schemas=False,
            downloads=True,
            packages=("transformers", "torch"),
        ),
        Engine(
            "vllm",
            "h2htalk.chat.vllm.engine:VLLMChat",
            local=True,
            options="h2htalk.chat.vllm.engine:VLLMOptions",
            model_is="folder",
            packages=("vllm", "transformers", "torch"),
        ),
        Engine(
            "openai",
            "h2htalk.chat.hosted.hosted_chat:OpenAIChat",
            hosted=True,
            sampling="optional",
            wire="h2htalk.chat.wires:OpenAIWire",
            packages=("openai",),
        ),
        Engine(
            "anthropic",
            "h2htalk.chat.hosted.hosted_chat:AnthropicChat",
            hosted=True,
            sampling="none",
            wire="h2htalk.chat.wires:AnthropicWire",
            packages=("anthropic",),
        ),
        Engine("server", "h2htalk.chat.server:ServerChat", sampling="optional", model_is="url", packages=("aiohttp",)),
        Engine("scripted", "h2htalk.chat.scripted:ScriptedChat", local=True, model_is="file"),
        Engine("python", "h2htalk.chat.python:PythonChat", sampling="none", reasons=False, schemas=False),
    )
}


def open_chat(model: str, options: ChatOptions | None = None) -> Chat:
    """Open `ENGINE` or `ENGINE:NAME`, such as `embedded`, `hf:PATH`, `server:MODEL@URL`, `scripted:FILE`. Raises
    ConfigError where there is no such engine, or the model cannot be opened; MissingExtraError where the engine's
    packages are not installed."""
    (engine, name), options = parse_model(model), options or ChatOptions()
    engine.check_options(options.engine_options)
    if options.batch:
        require_batches(engine)
    return cast("Chat", resolve_name(engine.path)(name, options))


def parse_model(model: str, *others: str) -> tuple[Engine, str]:
    """Split a model such as `hf:PATH` into its engine and its name. Raises ConfigError for another engine; it names the
    choices, the caller's `others` included."""
    name, _, model_name = model.partition(":")
    if name in ENGINES:
        return ENGINES[name], model_name
    choices = (*ENGINES, *others)
    meant = suggest(name, choices) or "write ENGINE:NAME and "
    raise ConfigError(f"unknown engine {quoted(name)}; {meant}choose from {', '.join(choices)}")


def model_kind(engine: str) -> str:
    """What a model's name is for an engine (`Engine.model_is`)."""
    return ENGINES[engine].model_is if engine in ENGINES else "name"


def engine_names(separator: str = " and ", /, **fields: object) -> str:
    """List the engines whose record has these values, for messages: `openai and anthropic`."""
    able = [one for one in ENGINES.values() if all(getattr(one, key) == value for key, value in fields.items())]
    return separator.join(engine.name for engine in able)


def require_batches(engine: Engine, advice: str = "") -> None:
    """Raise ConfigError for an engine that has no batch jobs."""
    if not engine.hosted:
        raise ConfigError(f"{engine.name} has no batches; {engine_names(hosted=True)} have{advice}")

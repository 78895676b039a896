"""The one table of engines. Adding an engine is a record here and the module that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from h2htalk.errors import ConfigError, quoted, suggest

if TYPE_CHECKING:  # `--help` lists the engines, and loads none of this
    from h2htalk.chat.chat_options import ChatOptions
    from h2htalk.chat.protocol import Chat, WireFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine: what answers requests, and what the rest of the package must know about it.

    Attributes:
        name: the part of a model's name before the colon.
        path: `module:Class`, called as `Class(model_name, options)`.
        hosted: every call costs money, so each is reserved in the call store.
        local: it runs on the user's own machine and costs nothing but time.
        batches: it can send everything as batch jobs.
        moderates: its models with `moderation` in their names answer at a moderation endpoint.
        sampling: whether temperature, top_p and seed are `taken`, may be left out (`optional`), or never taken
            (`none`: the model uses its own).
        reasons: a model of it may reason before it answers.
        options: `module:Class` whose `parse` reads the engine's own options; empty where it has none.
        wire: `module:Class` that builds and reads the calls of a hosted API; empty for others.
        model_is: what the part after the colon may be: a `name`, a `folder` (or a name on the Hub), a `file`, or a
            name with a `url`.
        schemas: it makes replies match a response schema.
        small: its model is too small for tasks in several steps; compose asks it for replies as plain text only.
        downloads: it fetches a model of the Hub only where `ChatOptions.download` is set.
        packages: the distributions that answer or ask, whose versions a run records.
    """

    name: str
    path: str
    hosted: bool = False
    local: bool = False
    batches: bool = False
    moderates: bool = False
    sampling: str = "taken"
    reasons: bool = True
    options: str = ""
    wire: str = ""
    model_is: str = "name"
    schemas: bool = True
    small: bool = False
    downloads: bool = False
    packages: tuple[str, ...] = ()

    def open(self, model_name: str, options: ChatOptions) -> Chat:
        """Open a model of this engine."""
        return cast("Chat", _load(self.path)(model_name, options))

    def check_options(self, given: Mapping[str, str]) -> None:
        """Raise ConfigError for options that this engine does not have, or that cannot be."""
        if given and not self.options:
            names = " and ".join(engine.name for engine in ENGINES.values() if engine.options)
            raise ConfigError(f"{self.name} has no engine options ({', '.join(given)}); {names} has")
        if self.options:
            _load(self.options).parse(given)

    def open_wire(self, model_name: str) -> WireFormat:
        """Return the wire format of a hosted API, without a key or a connection."""
        return cast("WireFormat", _load(self.wire)(model_name))


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="embedded",
            path="h2htalk.chat.local.embedded:EmbeddedChat",
            local=True,
            reasons=False,
            schemas=False,
            small=True,
            packages=("openvino-genai", "openvino"),
        ),
        Engine(
            name="hf",
            path="h2htalk.chat.local.hf:TransformersChat",
            local=True,
            model_is="folder",
            schemas=False,
            downloads=True,
            packages=("transformers", "torch"),
        ),
        Engine(
            name="vllm",
            path="h2htalk.chat.vllm.engine:VLLMChat",
            local=True,
            options="h2htalk.chat.vllm.engine:VLLMOptions",
            model_is="folder",
            packages=("vllm", "transformers", "torch"),
        ),
        Engine(
            name="openai",
            path="h2htalk.chat.hosted.hosted_chat:OpenAIChat",
            hosted=True,
            batches=True,
            moderates=True,
            sampling="optional",
            wire="h2htalk.chat.hosted.openai_wire:OpenAIWire",
            packages=("openai",),
        ),
        Engine(
            name="anthropic",
            path="h2htalk.chat.hosted.hosted_chat:AnthropicChat",
            hosted=True,
            batches=True,
            sampling="none",
            wire="h2htalk.chat.hosted.anthropic_wire:AnthropicWire",
            packages=("anthropic",),
        ),
        Engine(
            name="server",
            path="h2htalk.chat.server.engine:ServerChat",
            sampling="optional",
            model_is="url",
            packages=("aiohttp",),
        ),
        Engine(name="scripted", path="h2htalk.chat.scripted:ScriptedChat", local=True, model_is="file"),
    )
}


def open_chat(model: str, options: ChatOptions | None = None) -> Chat:
    """Open `ENGINE` or `ENGINE:NAME`, such as `embedded`, `hf:PATH`, `server:MODEL@URL`, `scripted:FILE`.

    Raises:
        ConfigError: no such engine, or the model cannot be opened.
        MissingExtraError: the engine's packages are not installed.
    """
    from h2htalk.chat.chat_options import ChatOptions

    engine, name = parse_model(model)
    options = options or ChatOptions()
    if options.engine_options:
        engine.check_options(options.engine_options)
    if options.batch:
        require_batches(engine)
    return engine.open(name, options)


def parse_model(model: str, *others: str) -> tuple[Engine, str]:
    """Split a model such as `hf:PATH` into its engine and its name.

    Raises:
        ConfigError: no such engine; names the choices, the caller's `others` included.
    """
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
    return separator.join(
        engine.name
        for engine in ENGINES.values()
        if all(getattr(engine, key) == value for key, value in fields.items())
    )


def require_batches(engine: Engine, advice: str = "") -> None:
    """Raise ConfigError for an engine that has no batch jobs."""
    if not engine.batches:
        raise ConfigError(f"{engine.name} has no batches; {engine_names(batches=True)} have{advice}")


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)

"""`--engine-option KEY=VALUE` of `server`, `openai` and `anthropic`: the form in which a request is sent.

Servers of one API differ in what they take. An option names another form of one parameter, or leaves it out; it is in
the signature, since some forms change the replies. `PARAMETERS` says which form is tried once by itself where a
parameter is refused. What changes how replies are drawn (temperature, top-p, seed, reasoning) is never left out unless
the user says so.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from h2htalk.chat.protocol import ReplySchema
from h2htalk.data.records import read_record
from h2htalk.errors import ConfigError

Sent = Literal["sent", "none"]
NONE = "none"
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
REQUEST_FORM = "request_form"  # in the subject of a signature
SAMPLING = ("temperature", "top_p", "seed")
# The words that ask for a form where the API does not enforce it: in the last message, after the fenced texts.
FORM_REQUEST = (
    "Reply with one JSON object and nothing else. It must follow this JSON schema:\n{schema}"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of requests that some servers refuse.

    Attributes:
        option: the engine option that names its form.
        choice: the value of the option that the advice names.
        effect: what changes for the user then.
        next_forms: the form that is tried next, by the form that was refused (empty: no option was given).
        instead: what else the user can do at a command with flags for sampling.
        names: how errors name it, beside its own name.
    """

    option: str
    choice: str
    effect: str
    next_forms: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    names: Sequence[str] = ()

    def next_form(self, form: str) -> dict[str, str]:
        """Return the option that is tried next where a form was refused; empty where there is none."""
        next_form = self.next_forms.get(form)
        return {} if next_form is None else {self.option: next_form}

    def advice(self) -> str:
        """The engine option to type."""
        return f"add --engine-option {self.option}={self.choice} ({self.effect})"


_TABLE = files("h2htalk.chat").joinpath("parameters.toml").read_text(encoding="utf-8")
PARAMETERS: Mapping[str, Parameter] = {
    name: Parameter(**record) for name, record in tomllib.loads(_TABLE).items()
}


def _check_marks(text: str) -> str:
    _, _, closes = text.partition(",")
    if not closes.strip():
        raise ValueError(
            "must be OPEN,CLOSE, such as <plan>,</plan>; OPEN may be empty where the prompt opens it"
        )
    return text


# The marks around reasoning, where no table knows them.
ThinkMarks = Annotated[str, AfterValidator(_check_marks)]


class EngineOptions(BaseModel):
    """The options of an engine, as `--engine-option KEY=VALUE` sets them."""

    # Built when options are read: building takes longer than everything else at the start of a command.
    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=True, defer_build=True
    )

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Parse the options that the user gave; raises ConfigError for an unknown key or an invalid value."""
        choices = f"choose from {', '.join(sorted(cls.model_fields))}"
        return read_record(
            cls, options, "--engine-option", error=ConfigError, coerce=True, unknown=choices
        )


class WireOptions(EngineOptions):
    """The options that every engine of this kind has. None: not given."""

    # `fold` puts the system text at the start of the first message of the user, for models without that role.
    system: Literal["native", "fold"] | None = None
    response_format: Literal["json_schema", "json_object", "none"] | None = None
    # `false` asks for the whole reply at once, for gateways that stream where nothing says so.
    stream: Literal["false"] | None = None

    def set_options(self) -> dict[str, str]:
        """Return the options that are set, by name."""
        return {name: str(value) for name, value in sorted(self) if value is not None}

    def subject(self) -> dict[str, str]:
        """Return the entry of a signature about the form of the requests; none where it is the usual one."""
        forms = [f"{name}={value}" for name, value in self.set_options().items()]
        return {REQUEST_FORM: ", ".join(forms)} if forms else {}

    def form(self, name: str) -> str:
        """Return the form that an option names; empty where it was not given."""
        return self.set_options().get(name, "")

    def leaves_out(self, name: str) -> bool:
        """Whether a parameter is left out."""
        return self.form(name) == NONE

    def think_marks(self) -> tuple[str, str] | None:
        """Return the marks around reasoning that the user named; an empty first one: the prompt opens it."""
        opens, comma, closes = self.form("think").partition(",")
        return (opens.strip(), closes.strip()) if comma else None

    def applied(self, body: Mapping[str, Any], schema: ReplySchema | None = None) -> dict[str, Any]:
        """Return the JSON of a call in the forms that the options name. `schema`: what the reply must follow."""
        changed = dict(body)
        limit = self.form("max_tokens_name")
        for name in TOKEN_LIMITS:
            if limit and name in changed:
                changed[limit] = changed.pop(name)
        for name in PARAMETERS:
            if self.leaves_out(name):
                changed.pop(name, None)
        if self.stream is not None:
            changed["stream"] = False
        if schema is not None and self.response_format in ("json_object", NONE):
            changed = _asked_in_prompt(changed, schema)
            if self.response_format == "json_object":
                changed["response_format"] = {"type": "json_object"}
        if self.system == "fold":
            changed = _folded(changed)
        return changed


class ChatCompletionOptions(WireOptions):
    """The options of engines that ask by chat completions."""

    think: ThinkMarks | None = None
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    temperature: Sent | None = None
    top_p: Sent | None = None
    seed: Sent | None = None


class ServerOptions(ChatCompletionOptions):
    """The options of `server:`."""

    chat_template_kwargs: Sent | None = None  # vLLM's and SGLang's switch of reasoning


class OpenAIOptions(ChatCompletionOptions):
    """The options of `openai:`, for OpenAI's models and for other APIs at OPENAI_BASE_URL."""

    n: Sent | None = None
    reasoning_effort: Sent | None = None
    store: Sent | None = None
    service_tier: Sent | None = None
    prompt_cache_key: Sent | None = None


class AnthropicOptions(WireOptions):
    """The options of `anthropic:`."""

    response_format: Literal["json_schema", "none"] | None = None
    thinking: Sent | None = None
    service_tier: Sent | None = None


FORMS = frozenset(
    {*ServerOptions.model_fields, *OpenAIOptions.model_fields, *AnthropicOptions.model_fields}
)
_NEXT_FORM = re.compile(rf", (?=(?:{'|'.join(sorted(FORMS))})=)")


def forms_of(subject: Mapping[str, str]) -> dict[str, str]:
    """Return the engine options that the subject of a signature names, as `WireOptions.subject` writes them."""
    text = subject.get(REQUEST_FORM, "")
    pairs = [option.partition("=") for option in _NEXT_FORM.split(text)]
    return {name: value for name, _, value in pairs if name in FORMS}


def sampling_left_out(engine_options: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of temperature, top-p and seed the engine options leave to the model."""
    return tuple(name for name in SAMPLING if engine_options.get(name) == NONE)


def parameters_of(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the parameters of a call's JSON that a server may refuse; `system` where it has a system text."""
    names = {name for name in PARAMETERS if name in body}
    if any(message.get("role") == "system" for message in body.get("messages", ())):
        names.add("system")
    return frozenset(names)


def _asked_in_prompt(body: Mapping[str, Any], schema: ReplySchema) -> dict[str, Any]:
    """Return a call whose last message asks for the form of the reply, and which enforces none."""
    form_request = FORM_REQUEST.format(schema=json.dumps(schema.schema(), ensure_ascii=False))
    *messages, last = body["messages"]
    messages.append({**last, "content": f"{last['content']}\n\n{form_request}"})
    changed = dict(body)
    changed.pop("response_format", None)
    changed.pop("output_config", None)
    changed["messages"] = messages
    return changed


def _folded(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call whose system text stands at the start of the first message of the user, before an assistant's in
    a message of its own."""
    changed = dict(body)
    texts = [block["text"] for block in changed.pop("system", ())]
    turns = []
    for message in changed["messages"]:
        if message["role"] == "system":
            texts.append(message["content"])
        else:
            turns.append(message)
    texts = [text for text in texts if text]
    if texts and turns and turns[0]["role"] == "user":
        texts.append(turns.pop(0)["content"])
    if texts:
        turns.insert(0, {"role": "user", "content": "\n\n".join(texts)})
    changed["messages"] = turns
    return changed

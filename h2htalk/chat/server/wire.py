"""Build the requests to an OpenAI-compatible server and read its answers. No connection is made here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.chat.calls import Answer, Call, FailedCall
from h2htalk.chat.hosted.openai_wire import OpenAIWire
from h2htalk.chat.local.chat_template import SWITCHES
from h2htalk.chat.protocol import Request
from h2htalk.chat.provider_errors import Api
from h2htalk.chat.server.endpoint import KEY_VARIABLE


@dataclass(frozen=True, slots=True)
class ServerWire(OpenAIWire):
    """The wire format of a model on a server: OpenAI's, without what only OpenAI takes. Its calls cost nothing."""

    url: str = ""

    @property
    def model(self) -> str:
        return f"server:{self.name}"

    @property
    def api(self) -> Api:
        advice = f"{'check' if self.key else 'set'} {KEY_VARIABLE}"
        return Api(self.url, self.name, advice, "the URL (most end in /v1)", hosted=False)

    def calls(self, requests: Sequence[Request]) -> Iterator[Call]:  # type: ignore[override]  # built when they are sent
        """Return one call for each request."""
        return (Call((index,), (request,)) for index, request in enumerate(requests))

    def body(self, call: Call, batch: bool = False) -> Mapping[str, Any]:
        """See `WireFormat.body`: without the settings that are left to the model."""
        request, sampling = call.request, call.request.sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": sampling.budget,
        }
        if sampling.temperature is not None:
            body |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed}
        if sampling.thinking is not None:
            # What templates of thinking models call their switch; vLLM and SGLang hand it to them.
            body["chat_template_kwargs"] = dict.fromkeys(SWITCHES, sampling.thinking > 0)
        if request.response_schema is not None:
            form = {
                "name": request.response_schema.name,
                "schema": request.response_schema.schema(),
                "strict": True,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def read(self, body: object, call: Call, request_id: str | None = None) -> Answer | FailedCall:
        """See `WireFormat.read`. A malformed answer cost nothing: the call is sent again."""
        found = OpenAIWire.read(self, body, call, request_id)
        return replace(found, retry=True) if isinstance(found, FailedCall) else found

    def read_error(self, status: int, body: object, headers: Mapping[str, str]) -> FailedCall:
        """See `WireFormat.read_error`. A rate limit is that of one call: a server has no account."""
        return replace(OpenAIWire.read_error(self, status, body, headers), limited=False)

"""`anthropic:MODEL`: Anthropic's models, by the messages API, live or as batch jobs."""

from __future__ import annotations

from h2htalk.chat.calls import WireFormat
from h2htalk.chat.hosted.anthropic_wire import AnthropicWire
from h2htalk.chat.hosted.hosted_chat import HostedChat
from h2htalk.chat.hosted.http_attempt import Provider

ANTHROPIC = Provider(
    title="Anthropic",
    module="anthropic",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    url="https://api.anthropic.com",
    client="Anthropic",
    create="messages.with_raw_response.create",
    example="claude-sonnet-5-5",
    jobs="h2htalk.chat.batch.anthropic_batches:AnthropicJobs",
    client_options={"open_telemetry": False},
)


class AnthropicChat(HostedChat):
    """An Anthropic model. The API takes no temperature, top_p or seed."""

    provider = ANTHROPIC

    def wire(self, name: str, key: str) -> WireFormat:
        return AnthropicWire(name, key)

"""`openai:MODEL`: OpenAI's models, by chat completions, live or as batch jobs."""

from __future__ import annotations

from h2htalk.chat.calls import WireFormat
from h2htalk.chat.hosted.hosted_chat import HostedChat
from h2htalk.chat.hosted.http_attempt import Provider
from h2htalk.chat.hosted.openai_wire import OpenAIWire

OPENAI = Provider(
    title="OpenAI",
    module="openai",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    url="https://api.openai.com/v1",
    client="OpenAI",
    create="chat.completions.with_raw_response.create",
    example="gpt-4o",
    jobs="h2htalk.chat.batch.openai_batches:OpenAIJobs",
)


class OpenAIChat(HostedChat):
    """An OpenAI model."""

    provider = OPENAI

    def wire(self, name: str, key: str) -> WireFormat:
        return OpenAIWire(name, key)

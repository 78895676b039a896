"""The double of the two providers speaks their protocol to their real SDKs, and its reserves are right."""

from __future__ import annotations

import provider_anthropic
import provider_openai
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming


def test_the_parameters_it_knows_are_those_of_the_installed_sdks() -> None:
    openai_own = set(CompletionCreateParamsNonStreaming.__annotations__)
    anthropic_own = set(MessageCreateParamsNonStreaming.__annotations__)
    # These two go out as headers.
    assert anthropic_own - {"user_profile_id", "workspace_id"} == provider_anthropic.PARAMETERS
    assert openai_own == provider_openai.PARAMETERS

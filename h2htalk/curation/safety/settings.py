"""Settings of safety."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from h2htalk.curation.setting_types import Dollars, FilePath, ModelName


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """`guard`: a model that decides undecided dialogues, such as `vllm:Qwen/Qwen3Guard-Gen-4B` or
    `openai:omni-moderation-latest`; `sensitive`: a file of your own politically sensitive terms; `explicit`: whether
    sexual content between adults removes a dialogue, or tags it for annotators who agreed to read it."""

    guard: ModelName = ""
    sensitive: FilePath = ""
    explicit: Literal["remove", "tag"] = "remove"
    max_cost: Dollars | None = None

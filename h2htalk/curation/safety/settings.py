"""Settings of safety."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.curation.setting_types import Dollars, FilePath, ModelName


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """`guard`: a model that decides undecided dialogues, such as `vllm:Qwen/Qwen3Guard-Gen-4B` or
    `openai:omni-moderation-latest`; `sensitive`: a file of your own politically sensitive terms."""

    guard: ModelName = ""
    sensitive: FilePath = ""
    max_cost: Dollars | None = None

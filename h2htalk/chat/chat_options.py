"""Options of running an engine, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from h2htalk.chat.store.call_store import StageCalls
from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to run an engine. Only `engine_options` may change its answers; the engine's `subject` then names them.

    Attributes:
        concurrency: requests in flight at once.
        timeout: seconds one attempt may take.
        attempts: tries a request, the first included.
        deadline: seconds one request to a hosted API may take in all, its tries and the waits between included.
        engine_options: options of this one engine by name, as text (`vllm`: `dtype`, `tensor_parallel_size`, ...).
        download: fetch a model of the Hugging Face Hub that is not in the local cache.
        calls: where paid calls are reserved before they are sent, and their replies stored; None keeps them in memory.
        batch: send everything as batch jobs.
    """

    concurrency: int = 64
    timeout: float = 120.0
    attempts: int = 4
    deadline: float = 900.0
    engine_options: Mapping[str, str] = field(default_factory=dict)
    download: bool = False
    calls: StageCalls | None = None
    batch: bool = False

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or not self.timeout > 0 or not self.deadline > 0:
            raise ConfigError("concurrency and attempts must be 1 or more, timeout and deadline above 0 seconds")

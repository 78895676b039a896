"""Batch jobs of the provider double: what it keeps of each, when it ends, and what can go wrong with it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from provider_faults import Refused

# A reply's JSON, a refusal, or why the request was never tried: `expired` or `canceled`.
Found = dict[str, Any] | Refused | str
STRANGER = {"model": "somebody-elses", "max_tokens": 1, "messages": [{"role": "user", "content": "nightly"}]}


@dataclass(slots=True)
class JobPlan:
    """How jobs behave. The counts are used up: the first so many times, then no more.

    Attributes:
        polls: a job ends at the so-many-th look at it, by itself or in a list.
        unmade: creations whose connection ends before there is a job.
        create_dropped: creations whose job is made, but whose reply never arrives.
        polls_failed: retrievals that answer 500.
        results_cut: readings of results that break in the middle.
        invalid: jobs whose validation fails as a whole (OpenAI).
        strangers: jobs of somebody else, of equal size, made just before ours.
    """

    polls: int = 1
    unmade: int = 0
    create_dropped: int = 0
    polls_failed: int = 0
    results_cut: int = 0
    invalid: int = 0
    strangers: int = 0

    def use(self, name: str) -> bool:
        """Whether this time is one of the first so many."""
        left = getattr(self, name)
        setattr(self, name, max(0, left - 1))
        return bool(left)


@dataclass(frozen=True, slots=True)
class Result:
    """One finished request of a job: a reply's JSON, a refusal, or why it was never tried."""

    custom_id: str
    found: Found
    request_id: str

    @property
    def kind(self) -> str:
        """As Anthropic calls it."""
        if isinstance(self.found, Refused):
            return "errored"
        return self.found if isinstance(self.found, str) else "succeeded"


@dataclass(slots=True)
class Job:
    """One job of one provider. `lines`: custom id and body, as they were sent."""

    id: str
    provider: str
    lines: list[tuple[str, Any]]
    metadata: dict[str, str] | None = None
    input_file: str = ""
    strange: bool = False
    invalid: list[dict[str, Any]] = field(default_factory=list)
    created: float = field(default_factory=time.time)
    polls: int = 0
    canceled: bool = False
    results: list[Result] | None = None

    @property
    def ended(self) -> bool:
        return self.results is not None or bool(self.invalid)

    def count(self, *kinds: str) -> int:
        return sum(result.kind in kinds for result in self.results or ())


class Jobs:
    """All jobs, oldest first."""

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        self.all: list[Job] = []
        self.files: dict[str, tuple[str, bytes]] = {}  # id -> name, content
        self._number = 0

    def next_id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number:06}"

    def add(self, provider: str, prefix: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        """A new job, and just before it a stranger's of equal size where one is due."""
        while self.plan.use("strangers"):
            strange = [(f"nightly-{number}", STRANGER) for number in range(len(lines))]
            self.all.append(Job(self.next_id(prefix), provider, strange, strange=True))
        job = Job(self.next_id(prefix), provider, lines, **more)
        self.all.append(job)
        return job

    def find(self, provider: str, job_id: str) -> Job | None:
        return next((job for job in self.all if job.id == job_id and job.provider == provider), None)

    def look(self, job: Job, compute: Callable[[Any], tuple[Found, str]]) -> None:
        """One look: at the last of them everything is computed, and then shuffled."""
        job.polls += 1
        if job.ended or (job.polls < self.plan.polls and not job.canceled):
            return
        results = []
        for custom_id, body in job.lines:
            if job.canceled:
                results.append(Result(custom_id, "canceled", ""))
            elif job.strange:
                results.append(Result(custom_id, Refused(400, "invalid_request_error", "not yours"), "req_x"))
            else:
                results.append(Result(custom_id, *compute(body)))
        random.Random(job.id).shuffle(results)
        job.results = results

    def page(self, provider: str, after: str | None, limit: int) -> tuple[list[Job], bool]:
        """So many jobs, newest first, behind the job `after`; whether there are more."""
        newest = [job for job in reversed(self.all) if job.provider == provider]
        ids = [job.id for job in newest]
        start = ids.index(after) + 1 if after in ids else 0
        return newest[start : start + limit], start + limit < len(newest)

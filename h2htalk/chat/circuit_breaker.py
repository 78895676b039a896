"""Stop asking an endpoint that no longer answers: count failures in a row over all workers of a run."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.errors import PausedError

# The run pauses at twice as many failed calls in a row as are in flight, and at half as many timeouts, which are long
# waits themselves: one wave without any answer.
FAILURES_A_WORKER = 2
LEAST_FAILURES, LEAST_AT_FIRST = 16, 8  # after the first answer; before it
TIMEOUT_COUNTS = 2
# Of `timeout`: wait before a call that timed out is sent again, so that those sent with it time out first.
PAUSE_AFTER_TIMEOUT = 0.05
_OUTAGES = frozenset({"timeout", "connection", "overloaded", "rate_limited", "malformed_reply", "http_408"})


@dataclass(slots=True)
class CircuitBreaker:
    """Counts what failed since the last answer: each timeout, and each call that was given up after its retries.

    A refusal of one item (HTTP 400, too long a prompt, a filter) is neither a failure of the endpoint nor an answer.
    """

    place: str
    workers: int
    calls: int = 0
    weight: int = 0
    least: int = LEAST_AT_FIRST

    def answered(self) -> None:
        """Start again at none: the endpoint answers."""
        self.calls = self.weight = 0
        self.least = LEAST_FAILURES

    def failed(self, reason: str, message: str, given_up: bool) -> PausedError | None:
        """Count a failed attempt; return the error that pauses the run once there are too many in a row.

        `given_up`: the call is not sent again. Before that only timeouts count, each of them.
        """
        timeout = reason == "timeout"
        if timeout == given_up or not (reason in _OUTAGES or reason.startswith("http_5")):
            return None
        self.calls += 1
        self.weight += TIMEOUT_COUNTS if timeout else 1
        if self.weight < max(self.least, FAILURES_A_WORKER * self.workers):
            return None
        return PausedError(
            f"paused: {self.place} did not answer {self.calls:,} calls in a row (the last: {message}); answers are "
            "kept, and the same command continues when it answers again"
        )

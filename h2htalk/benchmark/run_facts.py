"""How the answers of a run came: when, in what time, from which endpoint, with which versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import zip_longest
from statistics import median, quantiles

from h2htalk.benchmark.replies.prompt_sizes import PromptSizes
from h2htalk.chat.prices import Totals, sum_totals
from h2htalk.data.model_names import text_without_paths, without_path
from h2htalk.data.records import adapter, read_record
from h2htalk.data.responses import Answers, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import DataError, counted
from h2htalk.masking import KEY_MASK

_MOST_NAMED = 20  # models and fingerprints: a server may send another one each time


@dataclass(frozen=True, slots=True)
class Session:
    """One start of a run, from its first call to its last, in UTC; `ended` is None where it was killed.

    `endpoint` is what was asked (empty for engines on this machine), `versions` are those of the packages that did it.
    """

    started: datetime
    endpoint: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    ended: datetime | None = None


@contextmanager
def recorded_session(
    folder: RunFolder, versions: Mapping[str, str], endpoint: str = ""
) -> Iterator[None]:
    """Record a session in the folder's manifest. Raises DataError where it cannot be written."""
    earlier = read_sessions(folder)
    current = Session(datetime.now(UTC), endpoint, versions)
    _write_sessions(folder, [*earlier, current])
    try:
        yield
    finally:
        ended = replace(current, ended=datetime.now(UTC))
        # A full disk, which the log reported: the session ends with its last answer.
        with suppress(DataError):
            _write_sessions(folder, [*earlier, ended])


def _write_sessions(folder: RunFolder, sessions: Sequence[Session]) -> None:
    rows = adapter(list[Session]).dump_python([*sessions], mode="json")
    folder.write_facts("sessions", rows)


def read_sessions(folder: RunFolder) -> list[Session]:
    """Read when a run was started and resumed, oldest first; empty for imported answers. Raises DataError."""
    rows = folder.read_run().get("sessions", [])
    return read_record(list[Session], rows, f"{folder.manifest}: sessions")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of the calls behind a run's answers; empty where nothing was called.

    Attributes:
        started, ended: of the first and the last session, in UTC; `seconds` were spent answering in all `sessions`.
        input_tokens, output_tokens: of all paid calls, else of the answers that came with a count; None where none did.
        endpoints, models, fingerprints: number of answers by the URL that was asked, and by the `model` and the
            `system_fingerprint` that the server returned.
        latency: the median and the 95th percentile of the seconds that live calls took.
        prompts: characters of the prompts that were sent, and their tokens as the server reported them.
        versions, scoring_versions: of the packages that answered, and of those that scored, such as `Python 3.11.7`.
    """

    started: str = ""
    ended: str = ""
    seconds: float = 0.0
    sessions: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    endpoints: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, int] = field(default_factory=dict)
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    latency: tuple[float, float] | None = None
    versions: tuple[str, ...] = ()
    scoring_versions: tuple[str, ...] = ()
    prompts: PromptSizes | None = None

    @property
    def label(self) -> str:
        """What every table adds to the model's name where more than one endpoint answered."""
        return f" [{len(self.endpoints)} endpoints]" if len(self.endpoints) > 1 else ""

    def texts(self) -> list[tuple[str, str]]:
        """Return what is known as pairs of a name and a text, for tables and the page."""
        models = {without_path(name): number for name, number in self.models.items()}
        fingerprints = {
            text_without_paths(name): number for name, number in self.fingerprints.items()
        }
        texts = {
            "started": self.started,
            "ended": self.ended,
            "time answering": self._time_text(),
            "latency of a call": self._latency_text(),
            "tokens": self._tokens_text(),
            "prompt tokens as reported": self.prompts.text() if self.prompts else "",
            "endpoint": _format_counts(self.endpoints),
            "model returned": _format_counts(models),
            "system_fingerprint": _format_counts(fingerprints),
            "answered with": ", ".join(self.versions),
            "scored with": ", ".join(self.scoring_versions),
        }
        return [(name, text) for name, text in texts.items() if text]

    def _time_text(self) -> str:
        if not self.started:
            return ""
        sessions = f" in {self.sessions} sessions" if self.sessions > 1 else ""
        return f"{self.seconds:,.1f} s{sessions}"

    def _latency_text(self) -> str:
        if self.latency is None:
            return ""
        middle, high = self.latency
        return f"{middle:,.2f} s median, {high:,.2f} s 95th percentile"

    def _tokens_text(self) -> str:
        texts = []
        if self.input_tokens is not None:
            texts.append(f"{self.input_tokens:,} in")
        if self.output_tokens is not None:
            texts.append(f"{self.output_tokens:,} out")
        return ", ".join(texts)


def _format_counts(counts: Mapping[str, int]) -> str:
    """Format `a`, or `a (34 answers), b (120 answers)`."""
    if len(counts) < 2:
        return "".join(counts)
    return ", ".join(f"{name} ({counted(number, 'answer')})" for name, number in counts.items())


def collect_facts(
    sessions: Sequence[Session],
    answers: Answers,
    costs: Mapping[str, Totals],
    scoring_versions: Mapping[str, str],
    prompts: PromptSizes | None = None,
) -> RunFacts:
    """Sum up a run's sessions and answers. A session that was killed ended with its last answer."""
    spans = _session_spans(sessions, answers)
    replies = [answer for answer in answers.values() if isinstance(answer, Response)]
    usages = [sum_totals(costs.values())] if costs else [answer.usage for answer in replies]
    versions: dict[str, None] = {}
    for session in sessions:
        versions |= dict.fromkeys(_format_versions(session.versions))
    models = [without_path(answer.model) for answer in replies if answer.model]
    fingerprints = [
        text_without_paths(answer.system_fingerprint)
        for answer in replies
        if answer.system_fingerprint
    ]
    endpoints = [answer.endpoint for answer in replies]
    scored_with = _format_versions(scoring_versions)
    input_tokens = _sum_known(usage.input_tokens for usage in usages)
    output_tokens = _sum_known(usage.output_tokens for usage in usages)
    facts = RunFacts(
        sessions=len(spans),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        endpoints=_count_names(endpoints),
        models=_count_names(models),
        fingerprints=_count_names(fingerprints),
        latency=latency(replies),
        versions=tuple(versions),
        scoring_versions=tuple(scored_with),
        prompts=prompts,
    )
    if not spans:
        return facts
    return replace(
        facts,
        started=spans[0].start.isoformat(timespec="seconds"),
        ended=spans[-1].end.isoformat(timespec="seconds"),
        seconds=round(sum(span.seconds for span in spans), 3),
    )


def _format_versions(versions: Mapping[str, str]) -> list[str]:
    return [f"{package} {version}" for package, version in versions.items()]


@dataclass(frozen=True, slots=True)
class _Span:
    """From the start of a session to its end, in UTC."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


def _session_spans(sessions: Sequence[Session], answers: Answers) -> list[_Span]:
    """Return the span of each session that ended or has an answer."""
    times = [
        datetime.fromtimestamp(answer.at, UTC)
        for answer in answers.values()
        if answer.at is not None
    ]
    spans = []
    for session, following in zip_longest(sessions, sessions[1:]):
        end = session.ended
        if end is None:
            own_times = [time for time in times if time >= session.started]
            if following is not None:
                own_times = [time for time in own_times if time < following.started]
            end = max(own_times, default=None)
        if end is not None:
            spans.append(_Span(session.started, end))
    return spans


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    """Sum the numbers that are known; None where none is."""
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if known_numbers else None


def _count_names(names: Iterable[str | None]) -> dict[str, int]:
    """Count names, most frequent first; a long tail of them together."""
    ranked = Counter(name for name in names if name).most_common()
    counts = dict(ranked[:_MOST_NAMED])
    tail = ranked[_MOST_NAMED:]
    if tail:
        counts[f"{len(tail):,} others"] = sum(number for _, number in tail)
    return counts


def latency(responses: Iterable[Response]) -> tuple[float, float] | None:
    """Return the median and the 95th percentile of the seconds that calls took; None where none was timed."""
    seconds = [response.seconds for response in responses if response.seconds is not None]
    if not seconds:
        return None
    # `quantiles` needs two values.
    values = seconds * 2 if len(seconds) == 1 else seconds
    return median(seconds), quantiles(values, n=20, method="inclusive")[-1]


def answer_warnings(answers: Answers, facts: RunFacts) -> list[str]:
    """Warn of an API key that a server repeated, and of what changed during the run."""
    warnings = []
    ids = sorted({answer.id for answer in answers.values() if KEY_MASK in str(answer)})
    if ids:
        items = f"{counted(len(ids), 'item')} ({ids[0]})"
        warnings.append(f"the server repeated the API key in its answers to {items}; it was masked")
    changing = (
        ("several endpoints answered", facts.endpoints),
        ("the server returned several model names", facts.models),
        ("the server's system_fingerprint changed during the run", facts.fingerprints),
    )
    for change, counts in changing:
        if len(counts) > 1:
            warnings.append(f"{change}: {_format_counts(counts)}")
    return warnings

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
    sessions = read_sessions(folder)
    now = Session(datetime.now(UTC), endpoint, versions)

    def write(own: Session) -> None:
        folder.write_facts(
            "sessions", adapter(list[Session]).dump_python([*sessions, own], mode="json")
        )

    write(now)
    try:
        yield
    finally:
        with suppress(
            DataError
        ):  # a full disk, which the log reported: the session ends with its last answer
            write(replace(now, ended=datetime.now(UTC)))


def read_sessions(folder: RunFolder) -> list[Session]:
    """Read when a run was started and resumed, oldest first; empty for imported answers. Raises DataError."""
    return read_record(
        list[Session], folder.read_run().get("sessions", []), f"{folder.manifest}: sessions"
    )


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
        sessions = f" in {self.sessions} sessions" if self.sessions > 1 else ""
        counts = (("in", self.input_tokens), ("out", self.output_tokens))
        pairs = (
            ("started", self.started),
            ("ended", self.ended),
            ("time answering", self.started and f"{self.seconds:,.1f} s{sessions}"),
            (
                "latency of a call",
                self.latency
                and "{:,.2f} s median, {:,.2f} s 95th percentile".format(*self.latency),
            ),
            ("tokens", ", ".join(f"{n:,} {way}" for way, n in counts if n is not None)),
            ("prompt tokens as reported", self.prompts and self.prompts.text()),
            ("endpoint", _shares(self.endpoints)),
            (
                "model returned",
                _shares({without_path(name): count for name, count in self.models.items()}),
            ),
            (
                "system_fingerprint",
                _shares({text_without_paths(name): n for name, n in self.fingerprints.items()}),
            ),
            ("answered with", ", ".join(self.versions)),
            ("scored with", ", ".join(self.scoring_versions)),
        )
        return [(name, text) for name, text in pairs if text]


def _shares(counts: Mapping[str, int]) -> str:
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
    times = sorted(
        datetime.fromtimestamp(answer.at, UTC)
        for answer in answers.values()
        if answer.at is not None
    )
    spans = []
    for session, following in zip_longest(sessions, sessions[1:]):
        own = [
            at
            for at in times
            if at >= session.started and (following is None or at < following.started)
        ]
        if end := session.ended or (own[-1] if own else None):
            spans.append((session.started, end))
    replies = [answer for answer in answers.values() if isinstance(answer, Response)]
    usages = [sum_totals(costs.values())] if costs else [answer.usage for answer in replies]
    tokens = ([getattr(usage, f"{way}_tokens") for usage in usages] for way in ("input", "output"))
    sent, back = ([number for number in numbers if number is not None] for numbers in tokens)
    return RunFacts(
        started=spans[0][0].isoformat(timespec="seconds") if spans else "",
        ended=spans[-1][1].isoformat(timespec="seconds") if spans else "",
        seconds=round(sum((end - start).total_seconds() for start, end in spans), 3),
        sessions=len(spans),
        input_tokens=sum(sent) if sent else None,
        output_tokens=sum(back) if back else None,
        endpoints=_named(answer.endpoint for answer in replies),
        models=_named(without_path(answer.model) for answer in replies if answer.model),
        fingerprints=_named(
            text_without_paths(answer.system_fingerprint)
            for answer in replies
            if answer.system_fingerprint
        ),
        latency=latency(replies),
        versions=tuple(
            dict.fromkeys(f"{n} {v}" for session in sessions for n, v in session.versions.items())
        ),
        scoring_versions=tuple(f"{n} {v}" for n, v in scoring_versions.items()),
        prompts=prompts,
    )


def _named(names: Iterable[str | None]) -> dict[str, int]:
    """Count names, most frequent first; a long tail of them together."""
    counts = Counter(name for name in names if name).most_common()
    rest = sum(number for _, number in counts[_MOST_NAMED:])
    return dict(counts[:_MOST_NAMED]) | (
        {f"{len(counts) - _MOST_NAMED:,} others": rest} if rest else {}
    )


def latency(responses: Iterable[Response]) -> tuple[float, float] | None:
    """Return the median and the 95th percentile of the seconds that calls took; None where none was timed."""
    seconds = sorted(one.seconds for one in responses if one.seconds is not None)
    if not seconds:
        return None
    return median(seconds), quantiles(
        seconds * 2 if len(seconds) < 2 else seconds, n=20, method="inclusive"
    )[-1]


def answer_warnings(answers: Answers, facts: RunFacts) -> list[str]:
    """Warn of an API key that a server repeated, and of what changed during the run."""
    changing = (
        ("several endpoints answered", facts.endpoints),
        ("the server returned several model names", facts.models),
        ("the server's system_fingerprint changed during the run", facts.fingerprints),
    )
    found = list[str]()
    ids = sorted({answer.id for answer in answers.values() if KEY_MASK in str(answer)})
    if ids:
        items = f"{counted(len(ids), 'item')} ({ids[0]})"
        found.append(f"the server repeated the API key in its answers to {items}; it was masked")
    return [*found, *(f"{what}: {_shares(counts)}" for what, counts in changing if len(counts) > 1)]

"""The gate of the review: a reviewer may compare references once it has shown, on gold, that it beats chance.

`review.gold` names a file of comparisons whose answer people know, a JSON object a line:

    {"id": "g1", "language": "en", "subtask": "dialogue_base", "prompt": "I failed the exam.", "a": "...", "b": "...",
     "better": "a"}

`prompt` is the one message of a dialogue subtask; any subtask takes `inputs` instead, as a scenario's. `better` is `a`,
`b` or `tie`; `persona` and `risk` may be given. They are asked as candidates' references are: same prompts, samples and
margin. A reviewer at or below chance is sure where it is wrong, so nothing that it says of a pair may count.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.model_calls.stored_calls import Asking
from h2htalk.curation.pipeline import Incomplete
from h2htalk.curation.review.faireval import Gate, Verdict, gate
from h2htalk.curation.review.reviewer import Reviewer, comparisons, read_comparisons
from h2htalk.curation.settings import ReviewSettings
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.data.dialogue import read_id, read_language
from h2htalk.data.files import read_jsonl
from h2htalk.data.persona import bundled_personas
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.text.escaping import printable

GOLD = "part-gold"  # the name under which its calls are stored
_VERDICTS: Mapping[str, Verdict] = {"a": "win", "b": "lose", "tie": "tie"}
NOT_GATED = (
    "not gated: no gold comparisons are named (review.gold), so nothing shows that the reviewer's comparisons beat "
    "chance"
)


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold comparisons: a candidate of two references each, and of each, by its id, how the first one does."""

    candidates: tuple[Candidate, ...]
    truth: Mapping[str, Verdict]

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of what it holds, in whatever order."""
        held = sorted(
            json.dumps([candidate.to_dict(), self.truth[candidate.id]], sort_keys=True)
            for candidate in self.candidates
        )
        return hashlib.sha256("\0".join(held).encode()).hexdigest()[:16]


# --- The file -----------------------------------------------------------------------------------------------------


def read_gold(path: Path) -> Gold:
    """Read a file of gold comparisons.

    Raises:
        ConfigError: there is none, or it holds nothing that a reviewer could get right or wrong.
        DataError: a line is no comparison, or its id is there twice; names file and line.
    """
    if not path.is_file():
        raise ConfigError(f"review.gold: {path}: no such file")
    found: dict[str, Candidate] = {}
    truth: dict[str, Verdict] = {}
    for where, record in read_jsonl(path, unique_keys=True):
        candidate, verdict = _comparison(record, where)
        if candidate.id in found:
            raise DataError(f"{where}: the id {quoted(record['id'])} is there twice; give each line its own")
        found[candidate.id], truth[candidate.id] = candidate, verdict
    if not set(truth.values()) - {"tie"}:
        raise ConfigError(
            f"review.gold: {path}: holds no comparison with a better answer (a or b), so no reviewer can show that it "
            "tells them apart"
        )
    return Gold(tuple(found.values()), truth)


_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class _Line(BaseModel):
    """A line of the file; what a scenario holds is checked with the scenario."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    language: str
    subtask: str
    a: _Text
    b: _Text
    better: Literal["a", "b", "tie"]
    prompt: _Text | None = None
    inputs: dict[str, Any] | None = None
    persona: str | None = None
    risk: str = "none"


def _comparison(record: Mapping[str, Any], where: str) -> tuple[Candidate, Verdict]:
    where = f"{where}: {read_id(record, where)}"
    try:
        line = _Line.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DataError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if (line.prompt is None) == (line.inputs is None):
        raise DataError(f"{where}: give prompt or inputs, one of them")
    if line.a == line.b and line.better != "tie":
        raise DataError(f"{where}: a and b are the same text, of which none is better")
    language = read_language(record, where)
    persona = next(p.id for p in bundled_personas().values() if language in p.names)
    scenario = {
        "id": f"gold:{line.id}",
        "subtask": line.subtask,
        "language": language,
        "persona": line.persona or persona,
        "inputs": _inputs(line, where) if line.inputs is None else line.inputs,
        "reference": line.a,
        "tags": {"emotion": "unknown", "complexity": "basic", "interaction": "casual", "risk": line.risk},
        "provenance": {},
        "licence": "unknown",
    }
    read = Scenario.from_dict(scenario, where)
    return Candidate(read, (Reference(line.a), Reference(line.b))), _VERDICTS[line.better]


def _inputs(line: _Line, where: str) -> dict[str, Any]:
    subtask = find_subtask(line.subtask, where)
    if [name for name, _ in subtask.inputs] != ["history"] or not subtask.is_chat:
        raise DataError(f"{where}: a prompt alone is no {subtask.name}; give its inputs")
    return {"history": [{"role": "user", "content": line.prompt}]}


# --- Passing it -----------------------------------------------------------------------------------------------------


class Gatekeeper:
    """Whether the reviewer may compare. Gold is asked when the first candidate is to be compared, once a stage."""

    def __init__(
        self, folder: StageFolder, gold: Gold | None, reviewer: Reviewer, settings: ReviewSettings
    ) -> None:
        self._folder, self._gold, self._reviewer, self._settings = folder, gold, reviewer, settings

    def admits(self, asking: Asking) -> bool:
        """Whether comparisons count; without gold they do.

        Raises:
            Incomplete: gold comparisons failed; the same command asks for them again.
        """
        if self._gold is None:
            return True
        if "gate" not in self._folder.remarks():
            found = _tried(self._gold, self._reviewer, asking, self._settings)
            self._folder.remark("gate", found)
            if not found["accepted"]:
                print(printable(f"review: {found['told']}"), file=sys.stderr, flush=True)
        return bool(self._folder.remarks()["gate"]["accepted"])

    def close(self) -> None:
        """Say of a stage that never had to ask why it did not."""
        if "gate" in self._folder.remarks():
            return
        told = NOT_GATED
        if self._gold is not None:
            told = "gate: gold was not asked, as no candidate has several references to compare"
        self._folder.remark("gate", {"accepted": None, "told": told})


def require_reachable(gold: Gold) -> None:
    """See that gold lets anybody pass: few comparisons, or many ties among them, leave no room above chance.

    Raises:
        ConfigError: a reviewer that gets all of them right would be refused.
    """
    best = gate(gold.truth, gold.truth)
    if not best.accepted:
        ties = Counter(gold.truth.values())["tie"]
        raise ConfigError(
            f"review.gold: a reviewer that gets all {best.n:,} comparisons right would be refused (interval from "
            f"{best.low:.3f}); {ties:,} of them are ties: give more of them, 30 say, with a better answer (a or b)"
        )


def _tried(gold: Gold, reviewer: Reviewer, asking: Asking, settings: ReviewSettings) -> dict[str, Any]:
    """Ask for the gold comparisons, and what they come to."""
    requests = [r for c in gold.candidates for r in comparisons(reviewer, c, settings.samples)]
    try:
        replies = asking.ask(requests, GOLD)
    except Incomplete as error:
        raise Incomplete(f"review.gold: {error}; the same command asks again") from error
    verdicts: dict[str, Verdict | None] = {}
    for candidate in gold.candidates:
        (pair,) = read_comparisons(candidate, replies, settings.samples, settings.margin)
        # As candidates' comparisons count: one in which the orders conflict says nothing, people decide it.
        found = pair.calibration
        verdicts[candidate.id] = None if found.conflict else found.verdict
    languages = sorted({candidate.scenario.language for candidate in gold.candidates})
    return _told(gate(verdicts, gold.truth), list(verdicts.values()), languages)


def _told(found: Gate, verdicts: Sequence[Verdict | None], languages: Sequence[str]) -> dict[str, Any]:
    undecided = Counter(verdicts)[None]
    what = "passed" if found.accepted else "refused"
    low, high = _share(found.low), _share(found.high)
    said = f"gate: {what}: accuracy {found.accuracy:.3f} (95 % interval {low:.3f} to {high:.3f}) on "
    said += f"{found.n:,} gold comparisons ({', '.join(languages)})"
    if undecided:
        said += f", {undecided:,} of them without a verdict"
    if not found.accepted:
        said += f"; {found.reason}; candidates with several references keep the first and go to people"
    return {
        "accepted": found.accepted,
        "accuracy": round(found.accuracy, 6),
        "low": round(low, 6),
        "high": round(high, 6),
        "n": found.n,
        "undecided": undecided,
        "reason": found.reason,
        "told": said,
    }


def _share(value: float) -> float:
    """From 0 to 1: rounding may leave an end of the interval a hair outside."""
    return min(1.0, max(0.0, value))

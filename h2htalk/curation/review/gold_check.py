"""Check the reviewer on gold comparisons: it may compare references only if it beats chance on them.

`review.gold` names a file of comparisons with known answers, a JSON object a line:

    {"id": "g1", "language": "en", "subtask": "dialogue_base", "prompt": "I failed the exam.", "a": "...", "b": "...",
     "better": "a"}

`prompt` is the one message of a dialogue subtask; other subtasks have `inputs` instead, as in a scenario. `better` is
`a`, `b` or `tie`; `persona` and `risk` are optional. The reviewer gets them like the references of candidates: with the
same prompts, samples and margin. A reviewer at or below chance is sure where it is wrong, so its comparisons are not
used.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.store.model_calls import ModelCalls
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.prompts import fingerprint
from h2htalk.curation.review.faireval import Verdict, check_judge
from h2htalk.curation.review.reviewer import Reviewer
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import ConfigError, DataError, IncompleteError, quoted
from h2htalk.text.escaping import printable

NOTE = "judge_check"  # the name of the note, and a reason for people to decide
_VERDICTS: Mapping[str, Verdict] = {"a": "win", "b": "lose", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold comparisons: candidates of two references each, and the verdict on the first reference by id."""

    candidates: tuple[Candidate, ...]
    verdicts: Mapping[str, Verdict]

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of the content, in any order."""
        by_id = {candidate.id: candidate.to_dict() for candidate in self.candidates}
        return fingerprint({name: [record, self.verdicts[name]] for name, record in by_id.items()})


@strict_record
class _Line:
    """A line of the file; its scenario is checked with the scenario."""

    id: Id
    language: Language
    subtask: str
    a: Text
    b: Text
    better: Literal["a", "b", "tie"]
    prompt: Text | None = None
    inputs: dict[str, Any] | None = None
    persona: str | None = None
    risk: str = "none"


def read_gold(path: Path) -> Gold:
    """Read a file of gold comparisons. Raises ConfigError where there is none, or no reviewer could be accepted on it,
    and DataError, which names file and line, for a line that is no comparison or repeats an id."""
    if not path.is_file():
        raise ConfigError(f"review.gold: {path}: no such file")
    candidates: dict[str, Candidate] = {}
    verdicts: dict[str, Verdict] = {}
    for where, record in read_jsonl(path, unique_keys=True):
        line = read_record(_Line, record, where)
        name = f"gold:{line.id}"
        if name in candidates:
            raise DataError(f"{where}: the id {quoted(line.id)} is there twice; give each line its own id")
        candidates[name], verdicts[name] = _candidate(line, name, f"{where}: {line.id}"), _VERDICTS[line.better]
    best = check_judge(verdicts, verdicts) if verdicts else None
    if best is None or not best.accepted:
        ties = Counter(verdicts.values())["tie"]
        raise ConfigError(
            f"review.gold: {path}: a reviewer that gets all {len(verdicts):,} comparisons right would be refused; "
            f"{ties:,} of them are ties: add comparisons with a better answer (a or b), for instance 30"
        )
    return Gold(tuple(candidates.values()), verdicts)


def _candidate(line: _Line, name: str, where: str) -> Candidate:
    if (line.prompt is None) == (line.inputs is None):
        raise DataError(f"{where}: give either prompt or inputs")
    if line.a == line.b and line.better != "tie":
        raise DataError(f"{where}: a and b are the same text, so neither is better")
    inputs = line.inputs
    if inputs is None:
        subtask = find_subtask(line.subtask, where)
        if [field for field, _ in subtask.inputs] != ["history"] or not subtask.is_chat:
            raise DataError(f"{where}: {subtask.name} needs more than a prompt; give its inputs")
        inputs = {"history": [{"role": "user", "content": line.prompt}]}
    scenario = {
        "id": name,
        "subtask": line.subtask,
        "language": line.language,
        "persona": line.persona or next(p.id for p in bundled_personas().values() if line.language in p.names),
        "inputs": inputs,
        "reference": line.a,
        "tags": {"emotion": "unknown", "complexity": "basic", "interaction": "casual", "risk": line.risk},
        "provenance": {},
        "licence": "unknown",
    }
    return Candidate(Scenario.from_dict(scenario, where), (Reference(line.a), Reference(line.b)))


def may_compare(folder: StageFolder, gold: Gold | None, reviewer: Reviewer, calls: ModelCalls) -> bool:
    """Whether the reviewer's comparisons are used, which is checked once in a stage; without gold they are."""
    if gold is None:
        return True
    if NOTE not in folder.notes():
        note = _check(gold, reviewer, calls)
        folder.add_note(NOTE, note)
        if not note["accepted"]:
            print(printable(f"review: {note['message']}"), file=sys.stderr, flush=True)
    return bool(folder.notes()[NOTE]["accepted"])


def add_missing_note(folder: StageFolder, gold: Gold | None) -> None:
    """Note why the check was not made, in a stage that did not need it."""
    if NOTE not in folder.notes():
        reason = "as no candidate has several references to compare"
        if gold is None:
            reason = "as review.gold names no gold comparisons: nothing shows that the reviewer beats chance"
        folder.add_note(NOTE, {"accepted": None, "message": f"judge check: not made, {reason}"})


def _check(gold: Gold, reviewer: Reviewer, calls: ModelCalls) -> dict[str, Any]:
    try:
        compared = reviewer.compare(gold.candidates, calls, "the gold comparisons")
    except IncompleteError as error:
        raise IncompleteError(f"review.gold: {error}; the same command makes these calls again") from error
    # As for candidates: a comparison whose orders conflict is left to people.
    results = {name: pair.calibration for name, (pair,) in compared.items()}
    verdicts = {name: None if one.conflict else one.verdict for name, one in results.items()}
    languages = sorted({candidate.scenario.language for candidate in gold.candidates})
    undecided = Counter(verdicts.values())[None]
    check = check_judge(verdicts, gold.verdicts)
    message = f"judge check: {'passed' if check.accepted else 'refused'}: accuracy {check.accuracy:.3f} (95 % interval "
    message += f"{check.low:.3f} to {check.high:.3f}) on {check.n:,} gold comparisons ({', '.join(languages)})"
    if undecided:
        message += f", {undecided:,} of them without a verdict"
    if not check.accepted:
        message += f"; {check.reason}; people decide candidates with several references, which keep the first"
    return asdict(check) | {"undecided": undecided, "message": message}

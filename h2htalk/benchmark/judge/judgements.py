"""The judgements of a run, one file a judge.

judgements/FINGERPRINT.json    what the judge is: model, prompts, temperature, rule
judgements/calls.jsonl         the judges' call store: `id` is `ITEM/SAMPLE/HASH OF THE ANSWER`, `sample` the number of
                               the judgement, `stage` the judge
judgements/secret.key          of the fences in the prompts; made before the first judgement
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from h2htalk.benchmark.judge.rubric import RULE, Judgement, rubric_of
from h2htalk.benchmark.metrics.scoring import answer_hash
from h2htalk.chat.model_identity import model_identity, model_name
from h2htalk.chat.protocol import Outcome, Reply
from h2htalk.data.files import json_line, read_json_object, replacing, write_json
from h2htalk.data.records import read_record
from h2htalk.data.responses import CALLS, FailedResponse, Failure, Response, read_answers
from h2htalk.errors import DataError

_MISSING = Failure("not judged", "no judgement is stored", 0)


@dataclass(frozen=True, slots=True)
class Judge:
    """What a judgement depends on, beside the answer.

    `model` has no path or address; `identity` adds a hash of a script's or a folder's content. `prompts` are templates
    by name; `reverse`: the rubric's qualities stand in the reverse order; `rule`: how R is made of the scores.
    """

    model: str
    identity: str
    prompts: Mapping[str, str]
    temperature: float | None = 0.0
    thinking: int | None = None
    reverse: bool = False
    rule: str = RULE

    @classmethod
    def of(
        cls, model: str, prompts: Mapping[str, str], temperature: float | None, thinking: int | None, reverse: bool
    ) -> Judge:
        """Describe a judge. Raises ConfigError where its script or folder cannot be read."""
        return cls(model_name(model), model_identity(model), dict(prompts), temperature, thinking, reverse)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of all this: the name of its files."""
        return hashlib.sha256(json_line(asdict(self)).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """How tables name it: the model and the start of the fingerprint."""
        return f"{self.model}@{self.fingerprint[:8]}"

    @property
    def stage(self) -> str:
        """The name of its stage in the call store."""
        return f"judge-{self.fingerprint}"


def judgements_folder(run: Path) -> Path:
    """Return the folder of a run's judgements."""
    return run / "judgements"


def write_judge(run: Path, judge: Judge) -> None:
    """Write down what a judge is, before it is asked."""
    write_json(judgements_folder(run) / f"{judge.fingerprint}.json", asdict(judge))


def read_judge(run: Path, fingerprint: str) -> Judge:
    """Read a judge of a run.

    Raises:
        DataError: there is none of that fingerprint, or the file was edited.
    """
    path = judgements_folder(run) / f"{fingerprint}.json"
    try:
        judge = read_record(Judge, read_json_object(path), str(path), advice="; restore it")
    except FileNotFoundError:
        raise DataError(f"{path}: not there: the run has no such judge; run `h2htalk judge run`") from None
    if judge.fingerprint != fingerprint:
        raise DataError(f"{path}: was edited; restore it, or judge again")
    return judge


def answer_id(answer: Response) -> str:
    """The id of a judged answer: its item, its sample and its hash."""
    return f"{answer.id}/{answer.sample}/{answer_hash(answer)}"


def item_of(judged: str) -> str:
    """The item's id in the id of a judged answer."""
    return judged.rsplit("/", 2)[0]


class Judgements:
    """The stored judgements of one judge."""

    def __init__(self, run: Path, judge: Judge) -> None:
        """Read them. Raises DataError for a line that is no reply; names file and line."""
        self._judge = judge
        self.path = judgements_folder(run) / CALLS
        self._replies = read_answers(self.path, judge.stage)

    def of(self, answer: Response, subtask: str, number: int) -> tuple[Judgement, ...]:
        """Return the first `number` judgements of an answer; those that are not stored are unscored."""
        return tuple(map(rubric_of(subtask, self._judge.reverse).read, self.outcomes(answer, number)))

    def outcomes(self, answer: Response, number: int) -> list[Outcome]:
        """Return the judge's first `number` replies about an answer; calls that were not made are failures."""
        return [self.outcome(answer_id(answer), k) or _MISSING for k in range(number)]

    def outcome(self, judged: str, k: int = 0) -> Outcome | None:
        """What the judge answered to its k-th call about a text; None where that call was not made."""
        reply = self._replies.get((judged, k))
        if isinstance(reply, FailedResponse):
            return reply.failure
        return None if reply is None else Reply(reply.text, reply.finish_reason)


def fence_secret(folder: Path) -> bytes:
    """Return the secret of the fences in a folder of judgements, made at the first call.

    Raises:
        DataError: it was removed or edited although there are judgements: with another, all prompts would be others.
    """
    path = folder / "secret.key"
    if not path.exists() and not any(one.stat().st_size for one in folder.glob("*.jsonl")):
        with replacing(path, private=True) as part:
            part.write_text(secrets.token_hex(32))
    text = path.read_text(errors="replace") if path.is_file() else ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise DataError(f"{path}: missing or edited; restore it, or remove {folder} and judge everything again")
    return text.encode()

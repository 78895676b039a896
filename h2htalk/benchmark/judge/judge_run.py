"""Judge the answers of a run: every answer in the scope goes to every judge, and J goes into the run's tables.

Everything that can fail is checked first. Each reply is stored as it arrives, so a restart asks only for what is
missing; judgements of other judges stay beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from h2htalk.benchmark.judge.judgements import Judge, answer_id, fence_secret, judgements_folder, write_judge
from h2htalk.benchmark.judge.ratings import Judging, write_judging
from h2htalk.benchmark.judge.retirement import retirement_of
from h2htalk.benchmark.judge.rubric import JudgePrompts, JudgePromptWriter, reply_schema
from h2htalk.benchmark.judge.settings import JudgeSpec
from h2htalk.benchmark.load_run import Run, load_run
from h2htalk.benchmark.score_run import judge_again
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.engines import parse_model
from h2htalk.chat.protocol import Request, Sampling, request_seed
from h2htalk.chat.stored_calls.cost_limit import StageLimit
from h2htalk.chat.stored_calls.expected_cost import describe_calls
from h2htalk.chat.stored_calls.stored_calls import CallSettings, StoredCalls, check_model, shared_limit
from h2htalk.data.arguments import require_kind
from h2htalk.data.responses import Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted
from h2htalk.text.fences import Fence

JUDGE_TOKENS = 1200  # of a reply: a sentence of evidence for each quality and point, and the JSON around it
CHUNK = 4000  # requests that are made and kept in memory at once; a batch is sent whole

JudgedAnswer = tuple[Scenario, Response]


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The calls of one judge for a run."""

    judge: Judge
    spec: JudgeSpec
    model: str
    run: Run
    prompts: JudgePrompts

    @property
    def settings(self) -> CallSettings:
        spec = self.spec
        prices = str(spec.prices or "")
        return CallSettings(self.model, spec.max_cost, spec.batch, prices, spec.concurrency)

    def requests(self, answers: Sequence[JudgedAnswer], secret: bytes) -> Iterator[Request]:
        """Every judgement of every answer, in the run's order."""
        writer = JudgePromptWriter(self.prompts, self.judge.reverse)
        schemas = parse_model(self.model)[0].schemas
        for scenario, answer in answers:
            judged, persona = answer_id(answer), self.run.data.split.personas[scenario.persona]
            for k in range(self.spec.judgements):
                messages = writer.messages(scenario, persona, answer.answer, Fence.of(secret, judged, k))
                sampling = Sampling(
                    self.judge.temperature,
                    max_tokens=JUDGE_TOKENS,
                    seed=request_seed(0, judged, k),
                    thinking=self.judge.thinking,
                )
                schema = reply_schema(scenario.subtask, self.judge.reverse) if schemas else None
                yield Request(judged, messages, sampling, k, schema)

    def ask(self, answers: Sequence[JudgedAnswer], limit: StageLimit) -> None:
        """Ask for the judgements that are missing. Raises as `StoredCalls.outcomes`."""
        folder, name = judgements_folder(self.spec.path), self.judge.fingerprint
        requests = self.requests(answers, fence_secret(folder))
        with StoredCalls(self.settings, folder, self.judge.stage, limit, replies=f"{name}.jsonl") as calls:
            while chunk := list(islice(requests, None if self.spec.batch else CHUNK)):
                calls.outcomes(chunk, name)


def judge_run(spec: JudgeSpec) -> Summary:
    """Judge the answers of a scored run, or continue, and write its scores, tables and page with J.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.JudgeSpec(run="runs/constant", judges=("scripted:judge.jsonl",))
        >>> summary = h2htalk.judge_run(spec)
        >>> summary.judging.scored, summary.judging.total
        (6, 6)

    Returns:
        The summary. Where calls failed, `summary.incomplete` (exit code 3), and the same call repeats those alone.

    Raises:
        ConfigError, DataError, MissingExtraError, ModelCallError: the run is not scored, holds no answer to judge, or a
            judge cannot be asked.
    """
    require_kind(spec, JudgeSpec, "spec")
    run, panel = _open(spec)
    answers = judged_answers(run, spec.scope)
    for calls in panel:
        check_model(calls.settings)
    retirements = {calls.model: retirement_of(calls.model) for calls in panel}
    warnings = (day.warning(model, date.today()) for model, day in retirements.items() if day is not None)
    limit = shared_limit(judgements_folder(spec.path), panel[0].settings)
    for calls in panel:
        write_judge(spec.path, calls.judge)
        calls.ask(answers, limit)
    names = tuple(calls.judge.fingerprint for calls in panel)
    judging = Judging(names, spec.judgements, spec.scope, tuple(filter(None, warnings)))
    write_judging(run.data.folder, judging)
    return judge_again(spec.path)


def estimate_judging(spec: JudgeSpec) -> str:
    """Describe what judging would ask and cost; nothing is sent or written.

    Raises:
        ConfigError, DataError: as `judge_run` would raise before its first call.
    """
    run, panel = _open(spec)
    answers = judged_answers(run, spec.scope)
    lines = [f"{counted(len(answers), 'answer')} of {spec.run} to judge"]
    for calls in panel:
        check_model(calls.settings)
        lines.append(describe_calls(calls.settings, list(calls.requests(answers, b"")))[0])
    return "; ".join(lines)


def judged_answers(run: Run, scope: str) -> list[JudgedAnswer]:
    """Return the answers that a judge reads: of levels I to III, or of all subtasks.

    Raises:
        ConfigError: there is none.
    """
    answers = [
        (scenario, answer)
        for scenario in run.data.split.scenarios
        if scope == "all" or SUBTASKS[scenario.subtask].level
        for sample in range(run.data.spec.samples)
        if isinstance(answer := run.answers.get((scenario.id, sample)), Response)
    ]
    if not answers:
        raise ConfigError(
            f"{run.data.folder.path}: holds no answer to itinerary levels I to III; judge its other answers with "
            "--scope all"
        )
    return answers


def _open(spec: JudgeSpec) -> tuple[Run, list[JudgeCalls]]:
    run, prompts = load_run(spec.path), JudgePrompts.load(spec.prompts)
    panel = [
        JudgeCalls(
            Judge.of(model, prompts.of_run(), spec.temperature_of(model), spec.thinking, spec.reverse),
            spec,
            model,
            run,
            prompts,
        )
        for model in spec.judges
    ]
    return run, panel

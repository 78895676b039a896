"""Judge the answers of a run: every answer in the scope goes to every judge, and J goes into the run's tables.

Names, keys, addresses and prices are checked before the first call. Each reply is stored as it arrives, so a restart
asks only for what is missing; judgements of other judges stay beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice

from h2htalk.benchmark.judge.judgements import (
    JUDGEMENTS,
    JUDGING,
    LONGEST,
    Judge,
    Judgements,
    Judging,
    answer_id,
    ask_in_other_forms,
    fence_secret,
)
from h2htalk.benchmark.judge.rubric import load_prompts, prompt_writer, rubric_of, schema_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.settings import JudgeSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.engines import ChatOptions, model_identity, model_name, parse_model, require_model
from h2htalk.chat.protocol import Reply, Request, Sampling, request_seed
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model, describe_calls
from h2htalk.data.files import WAIT, writer_lock
from h2htalk.data.responses import JUDGE_FILTERED, Failure, Response, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, IncompleteError, counted
from h2htalk.text.fences import Fence
from h2htalk.text.jinja_templates import Templates

# The most tokens of a judge's reply: it has a sentence of evidence for each quality and point, and JSON around them.
JUDGE_TOKENS = 1200
# The number of requests that are made and kept in memory at once. A batch is sent whole.
CHUNK = 4000

JudgedAnswer = tuple[Scenario, Response]


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The calls of one judge for a run."""

    judge: Judge
    spec: JudgeSpec
    model: str
    run: Run
    prompts: Templates

    @property
    def settings(self) -> CallSettings:
        spec = self.spec
        options = ChatOptions(engine_options=self.judge.forms)
        prices = str(spec.prices or "")
        return CallSettings(
            model=self.model,
            max_cost=spec.max_cost,
            batch=spec.batch,
            prices=prices,
            concurrency=spec.concurrency,
            options=options,
        )

    def requests(self, answers: Sequence[JudgedAnswer], secret: bytes) -> Iterator[Request]:
        """Yield the request for every judgement of every answer, in the run's order."""
        judge = self.judge
        write_prompt = prompt_writer(self.prompts, judge.reverse)
        engine, _ = parse_model(self.model)
        for scenario, answer in answers:
            request_id = answer_id(answer)
            persona = self.run.data.split.personas[scenario.persona]
            schema = None
            if engine.schemas:
                schema = schema_of(rubric_of(scenario.subtask, judge.reverse))
            for k in range(self.spec.judgements):
                fence = Fence.of(secret, request_id, k)
                sampling = Sampling(
                    temperature=judge.temperature,
                    max_tokens=JUDGE_TOKENS,
                    seed=request_seed(0, request_id, k),
                    thinking=judge.thinking,
                )
                yield Request(
                    id=request_id,
                    messages=write_prompt(scenario, persona, answer.answer, fence),
                    sampling=sampling,
                    sample=k,
                    response_schema=schema,
                    item=scenario.id,
                )

    def ask(self, answers: Sequence[JudgedAnswer]) -> None:
        """Ask for the judgements that are missing; with `repeat_unscored` also those whose reply could not be read.

        Raises IncompleteError where every call failed, so that the judge has rated nothing, and what the calls of
        `ModelCalls` raise.
        """
        folder = self.spec.path / JUDGEMENTS
        number = self.spec.judgements
        requests = self.requests(answers, fence_secret(folder))
        repeated = set[SampleKey]()
        failures = []
        replies = 0
        if self.spec.repeat_unscored:
            stored = Judgements(self.spec.path, self.judge)
            for scenario, answer in answers:
                for k, judgement in enumerate(stored.of(answer, scenario.subtask, number)):
                    # What the judge's provider filters, it filters again.
                    if judgement.unscored not in (None, JUDGE_FILTERED):
                        repeated.add((answer_id(answer), k))
        with ModelCalls(self.settings, folder, self.judge.stage, adapts=False) as calls:
            chunk_size = None if self.spec.batch else CHUNK
            while chunk := list(islice(requests, chunk_size)):
                for outcome in calls.outcomes(chunk, repeated).values():
                    if isinstance(outcome, Failure):
                        failures.append(outcome)
                    elif isinstance(outcome, Reply):
                        replies += 1
        if not replies:
            first_failure = failures[0]
            reason = first_failure.message or first_failure.reason
            raise IncompleteError(
                f"{self.model}: no call was answered, so the tables stay as they are; the first: {reason}"
            )


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
    for model in spec.judges:
        require_model(model)
    with writer_lock(RunFolder(spec.path).calls_file, WAIT):
        panel, answers = _open(spec)
        for judge_calls in panel:
            check_model(judge_calls.settings)
        fingerprints = []
        for judge_calls in panel:
            ask = partial(_ask, judge_calls, answers)
            judge = ask_in_other_forms(spec.path, judge_calls.judge, ask)
            fingerprints.append(judge.fingerprint)
        judging = Judging(tuple(sorted(fingerprints)), spec.judgements, spec.scope)
        RunFolder(spec.path).write_facts(JUDGING, asdict(judging))
        return apply_judgements(spec.path, locked=True)


def _ask(judge_calls: JudgeCalls, answers: Sequence[JudgedAnswer], judge: Judge) -> None:
    """Ask a judge, whose `forms` may differ from those in `judge_calls`, for the judgements of the answers."""
    replace(judge_calls, judge=judge).ask(answers)


def estimate_judging(spec: JudgeSpec) -> str:
    """Describe what judging would ask and cost; nothing is sent or written.

    Raises what `judge_run` raises before its first call.
    """
    panel, answers = _open(spec)
    lines = [f"{counted(len(answers), 'answer')} of {spec.run} to judge"]
    for judge_calls in panel:
        check_model(judge_calls.settings)
        requests = list(judge_calls.requests(answers, secret=b""))
        description, _ = describe_calls(judge_calls.settings, requests)
        lines.append(description)
    return "; ".join(lines)


def judged_answers(run: Run, scope: str) -> list[JudgedAnswer]:
    """Return the answers that a judge reads: those to levels I to III, or with scope `all` those to all subtasks.

    Raises ConfigError where there are none.
    """
    counted_answers = run.counted
    answers: list[JudgedAnswer] = []
    for scenario in run.data.split.scenarios:
        if scope != "all" and not SUBTASKS[scenario.subtask].level:
            continue
        for sample in range(run.data.spec.samples):
            answer = counted_answers.get((scenario.id, sample))
            if isinstance(answer, Response) and len(answer.answer) <= LONGEST:
                answers.append((scenario, answer))
    if not answers:
        raise ConfigError(
            f"{run.data.folder.path}: holds no answer to itinerary levels I to III; judge its other answers with "
            "--scope all"
        )
    return answers


def _open(spec: JudgeSpec) -> tuple[list[JudgeCalls], list[JudgedAnswer]]:
    """Load the run, and return the calls of each judge of the panel and the answers that all of them judge."""
    run = load_run(spec.path)
    prompts = load_prompts(spec.prompts)
    panel = []
    for model in spec.judges:
        judge = Judge(
            model=model_name(model),
            identity=model_identity(model),
            prompts=prompts.sources,
            temperature=spec.temperature_of(model),
            thinking=spec.thinking,
            reverse=spec.reverse,
            forms=spec.options_of(model),
        )
        judge_calls = JudgeCalls(judge=judge, spec=spec, model=model, run=run, prompts=prompts)
        panel.append(judge_calls)
    return panel, judged_answers(run, spec.scope)

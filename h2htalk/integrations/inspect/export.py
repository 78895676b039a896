"""Scored runs and studies as Inspect's logs, which Inspect View opens: transcripts, scores, and a judge's evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, product
from pathlib import Path
from typing import Any

from h2htalk.benchmark.judge.judgements import Judgements, read_judge, read_judging
from h2htalk.benchmark.metrics.composite import SampleScore, all_columns
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.run_facts import read_sessions
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.protocol import Message
from h2htalk.data.links import link_copies
from h2htalk.data.model_names import without_path, without_paths
from h2htalk.data.releases.release_folder import HUB
from h2htalk.data.replies.finish_reasons import (
    CONTEXT,
    FILTERED,
    LENGTH,
    REFUSAL,
    STOP,
    TOOL,
    read_finish_reason,
)
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import list_splits
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.integrations.import_log import about_split
from h2htalk.version import __version__

try:
    from inspect_ai import log as logs
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        GenerateConfig,
        ModelOutput,
        ModelUsage,
    )
    from inspect_ai.scorer import Score
except ImportError:
    raise MissingExtraError("--to inspect", "pip install 'h2htalk[inspect]'") from None
from h2htalk.integrations.inspect.scorers import case_score, chat_messages

# Our words for how a reply ended, as Inspect has them; it has none for a model's own refusal.
_STOP_REASONS: dict[str, Any] = {
    STOP: "stop",
    LENGTH: "max_tokens",
    CONTEXT: "model_length",
    TOOL: "tool_calls",
    FILTERED: "content_filter",
    REFUSAL: "content_filter",
}
_MEANS = [{"*": [{"name": "mean"}, {"name": "stderr"}]}]
_METRICS = {"companion": [{"name": "h2htalk/overall"}, *_MEANS], "judge": _MEANS}
_CASE_METRICS = [{"name": "h2htalk/case_figures"}]


def export_log(path: Path, out: Path, prompts: Path | None = None) -> list[Path]:
    """Write a scored run or study as one log, `.eval` or `.json`; private references are not in it.

    `prompts`: the templates to render, as of `load_run`.
    """
    link_copies([path], out)
    evaluated: Any
    if StudyFolder(path).manifest.exists():
        result = load_study(path)
        evaluated = result.study
        spec = evaluated.spec.ask
        task = f"study_{evaluated.spec.study}"
        signature = evaluated.signature
        samples = list(_study_samples(result))
    else:
        run = load_run(path, prompts)
        run.data.require_rendered("a log of Inspect")
        evaluated = run.data
        spec = evaluated.spec
        task = "mini"
        signature = run.summary.signature
        samples = list(_run_samples(run))
    subject = without_paths(signature.subject)
    engine = subject["engine"]
    split = evaluated.split
    started, ended = _times_of(evaluated.folder)
    settings = ("language", "sap", "embedder", "limit", "split", "subtasks")
    requested = {name: getattr(spec, name) for name in settings}
    if spec.split not in list_splits() and not str(spec.split).startswith(HUB):
        requested["split"] = split.name  # not a folder of this machine
    sampling = {"max_tokens": spec.max_tokens}
    if spec.sampling_temperature is not None:
        for name in ("temperature", "top_p", "seed"):
            sampling[name] = getattr(spec, name)
    ids = dict.fromkeys(sample.id for sample in samples)
    evaluation = logs.EvalSpec(
        created=started,
        task=f"h2htalk/{task}",
        task_version=split.version,
        dataset=logs.EvalDataset(name=split.name, sample_ids=list(ids)),
        model=f"{engine}/{subject['model'].removeprefix(engine + ':')}",
        model_generate_config=GenerateConfig(**sampling),
        config=logs.EvalConfig(epochs=spec.samples),
        packages={"h2htalk": __version__},
        metadata=about_split(split, without_paths(signature.protocol), requested),
        scorers=_scorers_of(samples),
    )
    stats = logs.EvalStats(started_at=started, completed_at=ended)
    log = logs.EvalLog(status="success", eval=evaluation, stats=stats, samples=samples)
    try:
        logs.recompute_metrics(log)
    except (
        LookupError
    ):  # a checkout's .egg-info, before the installation on sys.path, hides it from Inspect
        raise ConfigError(
            "Inspect sees no h2htalk: install it, and call `h2htalk`, not `python -m h2htalk`"
        ) from None
    logs.write_eval_log(log, str(out))
    return [out]


def _times_of(folder: RunFolder) -> tuple[str, str]:
    """When the first session began and the last one ended, or else when the last reply was stored."""
    stored = int(folder.calls_file.stat().st_mtime)
    started = ended = datetime.fromtimestamp(stored, UTC)
    sessions = read_sessions(folder)
    if sessions:
        started = sessions[0].started
        ended = sessions[-1].ended or ended
    return started.isoformat(), ended.isoformat()


def _scorers_of(samples: Iterable[Any]) -> list[Any]:
    """The scorers of the samples, each with the metrics that Inspect is to compute."""
    scorers: dict[str, Any] = {}
    for sample in samples:
        for name in sample.scores:
            scorers[name] = {"name": name, "metrics": _METRICS.get(name, _CASE_METRICS)}
    return list(scorers.values())


def _run_samples(run: Run) -> Iterator[Any]:
    data = run.data
    judging = read_judging(data.folder)
    panel: list[tuple[str, Judgements]] = []
    for name in judging.judges if judging else ():
        judge = read_judge(data.folder.path, name)
        panel.append((judge.label, Judgements(data.folder.path, judge)))
    all_scores = chain.from_iterable(item.samples for item in run.item_scores.values())
    columns = all_columns(score.values for score in all_scores)
    for scenario in data.split.scenarios:
        subtask = scenario.subtask
        metadata = {"subtask": subtask, "language": scenario.language}
        item = metadata | {"item": scenario.id}
        prompt: Iterable[Message] = [Message("user", str(scenario.to_dict()["inputs"]))]
        if data.prompt_of:
            prompt = data.prompt_of(scenario)
        for score in run.item_scores[scenario.id].samples:
            key = (scenario.id, score.sample)
            answer = run.answers.get(key)
            text = answer.answer if isinstance(answer, Response) else None
            scores = {"companion": _companion_score(score, item, columns, text)}
            if isinstance(answer, Response) and judging and judging.judged([scenario]):
                lines = _evidence_lines(panel, answer, scenario.subtask, judging.judgements)
                scores["judge"] = Score(
                    value={"r": _number(score.rating), "j": _number(score.j)},
                    answer=text,
                    reason=score.unjudged,
                    explanation="\n\n".join(lines),
                )
            yield _sample(key, prompt, answer, list(scenario.references), metadata, scores)


def _companion_score(
    score: SampleScore, item: Mapping[str, str], columns: Iterable[str], text: str | None
) -> Score:
    """The score of the scorer `companion`, as Inspect's own evaluation gives it."""
    if score.unscored:
        return Score.unscored(reason=score.unscored, metadata=item)
    values = {name: score.values.get(name) for name in columns}
    values |= {"lexical": score.lexical, "s": score.s, "compliance": None}
    violations = score.violations
    if violations is not None:
        values["compliance"] = float(not violations)
    contract = ", ".join(violations or ()) or "kept"
    return Score(
        value={name: _number(value) for name, value in values.items()},
        answer=text,
        explanation=f"contract: {contract}",
        metadata=item,
    )


def _evidence_lines(
    panel: Iterable[tuple[str, Judgements]], answer: Response, subtask: str, number: int
) -> Iterator[str]:
    """What each judge of the panel said of each part of an answer."""
    for label, judgements in panel:
        for judgement in judgements.of(answer, subtask, number):
            for part, evidence in judgement.evidence.items():
                mark = judgement.scores.get(part, judgement.points.get(part))
                yield f"{label}, {part}: {mark}. {evidence}"


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _study_samples(result: StudyResult) -> Iterator[Any]:
    for arm, case in product(result.study.spec.arms, result.study.cases):
        arm_and_case = (arm, case.id)
        replies = [
            answered
            for answered in result.replies
            if (answered.reply.arm, answered.reply.case) == arm_and_case
        ]
        rows = [row for row in result.observations if (row.arm, row.item) == arm_and_case]
        with_text = [answered.reply for answered in replies if answered.reply.text is not None]
        reply = with_text[-1] if with_text else replies[0].reply
        conversation = [
            Message("user" if message.role == "user" else "assistant", message.content)
            for message in reply.said
        ]
        metadata = {"arm": arm, "kind": case.kind, "family": case.family, "language": case.language}
        answer = None
        if reply.text is not None:
            answer = Response(case.id, 0, reply.text, reply.finish)
        scores = {"points": case_score(rows, replies)}
        yield _sample((f"{arm}/{case.id}", 0), conversation, answer, [], metadata, scores)


def _sample(
    key: SampleKey,
    prompt: Iterable[Message],
    answer: Any,
    references: list[str],
    metadata: Mapping[str, Any],
    scores: Mapping[str, Any],
) -> Any:
    messages = chat_messages(prompt)
    fields: dict[str, Any] = {"input": messages, "messages": messages, "scores": scores}
    if "arm" in metadata:
        fields["input"] = messages[:1]  # of a conversation the beginning
    if isinstance(answer, Response):
        reply = ChatMessageAssistant(content=answer.text)
        stop_reason = _STOP_REASONS.get(read_finish_reason(answer.finish_reason), "unknown")
        input_tokens = answer.usage.input_tokens or 0
        output_tokens = answer.usage.output_tokens or 0
        fields["messages"] = [*messages, reply]
        fields["output"] = ModelOutput(
            model=without_path(answer.model or ""),
            choices=[ChatCompletionChoice(message=reply, stop_reason=stop_reason)],
            usage=ModelUsage(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                total_tokens=input_tokens + output_tokens,
            ),
            time=answer.seconds,
        )
    else:  # without its message, which may name a server
        reason = "missing" if answer is None else answer.failure.reason
        fields["error"] = logs.EvalError(message=reason, traceback="", traceback_ansi="")
    item, sample = key
    return logs.EvalSample(
        id=item, epoch=sample + 1, target=references or "", metadata=metadata, **fields
    )

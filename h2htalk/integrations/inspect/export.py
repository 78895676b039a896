"""Scored runs and studies as Inspect's logs, which Inspect View opens: transcripts, scores, and a judge's evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from h2htalk.benchmark.answering import read_sessions
from h2htalk.benchmark.judge.judgements import Judgements, read_judge, read_judging
from h2htalk.benchmark.metrics.composite import all_columns
from h2htalk.benchmark.results_export.export import without_folders
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.protocol import Message
from h2htalk.data.links import link_copies
from h2htalk.data.releases.release_folder import HUB
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.splits import list_splits
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.integrations.import_log import FINISH, about_split
from h2htalk.version import __version__

try:
    from inspect_ai import log as logs
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, GenerateConfig, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score
except ImportError:
    raise MissingExtraError("--to inspect", "pip install 'h2htalk[inspect]'") from None
from h2htalk.integrations.inspect.scorers import case_score, chat_messages

_STOPS = {"stop": "stop", **{ours: theirs for theirs, ours in FINISH.items()}}
_MEANS = [{"*": [{"name": "mean"}, {"name": "stderr"}]}]
_METRICS = {"companion": [{"name": "h2htalk/overall"}, *_MEANS], "judge": _MEANS}


def export_log(path: Path, out: Path) -> list[Path]:
    """Write a scored run or study as one log, `.eval` or `.json`; private references are not in it."""
    link_copies([path], out)
    found: Any = load_study(path) if StudyFolder(path).manifest.exists() else load_run(path)
    if isinstance(found, StudyResult):
        own, samples, signature = found.study, list(_study_samples(found)), found.study.signature
        ask, task = own.spec.ask, f"study_{own.spec.study}"
    else:
        own, samples, signature = found.data, list(_run_samples(found)), found.summary.signature
        ask, task = own.spec, "mini"
    subject, split, sessions = without_folders(signature.subject), own.split, read_sessions(own.folder)
    stored = datetime.fromtimestamp(int(own.folder.calls_file.stat().st_mtime), UTC)
    began, ended = (sessions[0].started, sessions[-1].ended or stored) if sessions else (stored, stored)
    asked = {name: getattr(ask, name) for name in ("language", "sap", "embedder", "limit", "split", "subtasks")}
    if ask.split not in list_splits() and not str(ask.split).startswith(HUB):
        asked["split"] = split.name  # not a folder of this machine
    drawn = () if ask.sampling_temperature is None else ("temperature", "top_p", "seed")
    log = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            created=began.isoformat(),
            task=f"h2htalk/{task}",
            task_version=split.version,
            dataset=logs.EvalDataset(name=split.name, sample_ids=list(dict.fromkeys(one.id for one in samples))),
            model=f"{subject['engine']}/{subject['model'].removeprefix(subject['engine'] + ':')}",
            model_generate_config=GenerateConfig(**{name: getattr(ask, name) for name in (*drawn, "max_tokens")}),
            config=logs.EvalConfig(epochs=ask.samples),
            packages={"h2htalk": __version__},
            metadata=about_split(split, without_folders(signature.protocol), asked),
            scorers=[
                {"name": name, "metrics": _METRICS.get(name, [{"name": "h2htalk/case_figures"}])}
                for name in dict.fromkeys(name for one in samples for name in one.scores)
            ],
        ),
        stats=logs.EvalStats(started_at=began.isoformat(), completed_at=ended.isoformat()),
        samples=samples,
    )
    try:
        logs.recompute_metrics(log)
    except LookupError:  # a checkout's .egg-info, before the installation on sys.path, hides it from Inspect
        raise ConfigError("Inspect sees no h2htalk: install it, and call `h2htalk`, not `python -m h2htalk`") from None
    logs.write_eval_log(log, str(out))
    return [out]


def _run_samples(run: Run) -> Iterator[Any]:
    data, judging = run.data, read_judging(run.data.folder)
    panel = [read_judge(data.folder.path, name) for name in judging.judges] if judging else []
    judges = [(one.label, Judgements(data.folder.path, one)) for one in panel]
    columns = all_columns(one.values for item in run.item_scores.values() for one in item.samples)
    for scenario in data.split.scenarios:
        asked = data.prompt_of(scenario) if data.prompt_of else [Message("user", str(scenario.to_dict()["inputs"]))]
        about = {"subtask": scenario.subtask, "language": scenario.language}
        for score in run.item_scores[scenario.id].samples:
            key, answer = (scenario.id, score.sample), run.answers.get((scenario.id, score.sample))
            own = {**score.to_dict(), "compliance": None if score.violations is None else float(not score.violations)}
            value = {name: _number(own.get(name)) for name in (*columns, "lexical", "s", "compliance")}
            item, broken = about | {"item": scenario.id}, ", ".join(score.violations or ())
            text = answer.answer if isinstance(answer, Response) else None
            found = Score(value=value, answer=text, explanation=f"contract: {broken or 'kept'}", metadata=item)
            scores = {"companion": Score.unscored(reason=score.unscored, metadata=item) if score.unscored else found}
            if judging and isinstance(answer, Response) and judging.judged([scenario]):
                lines = [
                    f"{name}, {part}: {one.scores.get(part, one.points.get(part))}. {evidence}"
                    for name, judge in judges
                    for one in judge.of(answer, scenario.subtask, judging.judgements)
                    for part, evidence in one.evidence.items()
                ]
                rated = {"r": _number(score.rating), "j": _number(score.j)}
                scores["judge"] = Score(value=rated, answer=text, reason=score.unjudged, explanation="\n\n".join(lines))
            yield _sample(key, asked, answer, list(scenario.references), about, scores)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _study_samples(result: StudyResult) -> Iterator[Any]:
    for arm, case in product(result.study.spec.arms, result.study.cases):
        own = [one for one in result.replies if (one.reply.arm, one.reply.case) == (arm, case.id)]
        rows = [row for row in result.observations if (row.arm, row.item) == (arm, case.id)]
        last = next((one.reply for one in reversed(own) if one.reply.text is not None), own[0].reply)
        said = [Message("user" if one.role == "user" else "assistant", one.content) for one in last.said]
        about = {"arm": arm, "kind": case.kind, "family": case.family, "language": case.language}
        answer = None if last.text is None else Response(case.id, 0, last.text, last.finish)
        yield _sample((f"{arm}/{case.id}", 0), said, answer, [], about, {"points": case_score(rows, own)})


def _sample(key: SampleKey, asked: Iterable[Message], answer: Any, target: list[str], about: Any, scores: Any) -> Any:
    first = chat_messages(asked)
    begin = first[:1] if "arm" in about else first  # of a conversation the beginning
    there = {"input": begin, "messages": first, "target": target or "", "metadata": about, "scores": scores}
    if isinstance(answer, Response):
        said = ChatMessageAssistant(content=answer.text)
        choice = ChatCompletionChoice(message=said, stop_reason=_STOPS.get(answer.finish_reason, "unknown"))
        sent, back = answer.usage.input_tokens or 0, answer.usage.output_tokens or 0
        usage = ModelUsage(input_tokens=sent, output_tokens=back, total_tokens=sent + back)
        output = ModelOutput(model=answer.model or "", choices=[choice], usage=usage, time=answer.seconds)
        there |= {"messages": [*first, said], "output": output}
    else:  # without its message, which may name a server
        reason = "missing" if answer is None else answer.failure.reason
        there["error"] = logs.EvalError(message=reason, traceback="", traceback_ansi="")
    return logs.EvalSample(id=key[0], epoch=key[1] + 1, **there)

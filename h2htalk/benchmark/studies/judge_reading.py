"""Ask a study's judge, and stop where the first of its replies are all of a form that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from h2htalk.benchmark.judge.judgements import Judgements
from h2htalk.benchmark.judge.rubric import Judgement, Rubric
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.chat.engines import model_name, parse_model
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.response_schema import ACCEPTED
from h2htalk.chat.store.model_calls import ModelCalls
from h2htalk.chat.wire_options import NONE
from h2htalk.data.responses import SampleKey
from h2htalk.errors import ConfigError, ModelCallError

FIRST_READ = 5  # replies of a judge that are read before all others are asked for
# The engine option that asks a server for JSON and nothing else.
_JSON_ALONE = {"response_format": "json_object"}


def ask_judge(
    calls: ModelCalls,
    requests: Sequence[Request],
    stored: Judgements,
    rubrics: Mapping[str, Rubric],
    spec: StudySpec,
) -> None:
    """Ask a judge for what is not stored; `rubrics`: what it answers, by the requests' ids.

    While none of its replies could be read, a few are asked for first, and unreadable ones that are stored count for
    nothing: they are asked for again, since the judge's server may write in another form by now. A judge that has
    answered everything is asked nothing.

    Raises ModelCallError where the first `FIRST_READ` replies are all unreadable.
    """
    outcomes = {request.id: stored.outcome(request.id) for request in requests}
    missing = [request for request in requests if not isinstance(outcomes[request.id], Reply)]
    unread = [
        request for request in requests if _is_unread(outcomes[request.id], rubrics[request.id])
    ]
    was_read = len(requests) - len(missing) > len(unread)
    repeated: set[SampleKey] = set()
    if missing and not was_read:
        repeated = {(request.id, request.sample) for request in unread}
        first = [*unread, *missing][:FIRST_READ]
        number = len(unread) + len(missing) - len(first)
        first_outcomes = calls.outcomes(first, repeated)
        _require_read(first_outcomes, rubrics, spec, number)
        repeated -= first_outcomes.keys()
    calls.outcomes(requests, repeated)


def _is_unread(outcome: Outcome | None, rubric: Rubric) -> bool:
    """Whether a judge's reply is stored whose form cannot be read; a refusal and a filter's word are none."""
    return isinstance(outcome, Reply) and bool(rubric.read(outcome).message)


def _require_read(
    outcomes: Mapping[SampleKey, Outcome],
    rubrics: Mapping[str, Rubric],
    spec: StudySpec,
    number: int,
) -> None:
    """Raise ModelCallError where the first replies are all unreadable, and `number` more would be asked for."""
    judgements: list[Judgement] = []
    for (name, _), outcome in outcomes.items():
        if _is_unread(outcome, rubrics[name]):
            judgements.append(rubrics[name].read(outcome))
    if len(judgements) < FIRST_READ or not number:
        return
    first = judgements[0]
    raise ModelCallError(
        f"{model_name(spec.judge)}: the first {FIRST_READ} replies of the judge could not be read, so {number:,} more "
        f"were not asked for; {first.unscored}: {first.message}; {form_advice(spec)}; the replies of the study are "
        "stored, and the same command goes on from them"
    )


def form_advice(spec: StudySpec) -> str:
    """What of a judge's reply is read, and what to type for a judge that writes more."""
    return f"{ACCEPTED}; {_option_advice(spec)}name another --judge"


def _option_advice(spec: StudySpec) -> str:
    """The option to type, of an engine that has one which is not set yet; none where its server was asked without a
    form, since it refused `json_object` before."""
    engine, _ = parse_model(spec.judge)
    if spec.judge_options.get("response_format") == NONE:
        return ""
    options = {**spec.judge_options, **_JSON_ALONE}
    try:
        engine.check_options(options)
    except ConfigError:
        return ""
    if options == spec.judge_options:
        return ""
    return (
        "type --judge-option response_format=json_object, which asks its server for JSON alone, or "
    )

"""Ask a model what a run still lacks, and store each answer the moment it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from h2htalk.benchmark.spec import EvaluateSpec
from h2htalk.chat.base import Chat, Message, Outcome, Request, Sampling, request_seed
from h2htalk.data.run import FailedResponse, Failure, Response
from h2htalk.data.run_folder import Answers, RunWriter
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.progress import Progress

PromptOf = Callable[[Scenario], tuple[Message, ...]]


def missing_requests(
    scenarios: Sequence[Scenario], spec: EvaluateSpec, prompt_of: PromptOf, answers: Answers
) -> list[Request]:
    """The calls that a run still lacks: samples without an answer, failed ones included, in split order."""
    requests = []
    for scenario in scenarios:
        for sample in range(spec.samples):
            if not isinstance(answers.get((scenario.id, sample)), Response):
                sampling = Sampling(
                    temperature=spec.temperature,
                    top_p=spec.top_p,
                    max_tokens=spec.max_tokens or SUBTASKS[scenario.subtask].max_tokens,
                    seed=request_seed(spec.seed, scenario.id, sample),
                )
                requests.append(Request(scenario.id, prompt_of(scenario), sampling, sample))
    return requests


def generate(chat: Chat, requests: Sequence[Request], writer: RunWriter) -> None:
    """Send the requests; every outcome is stored in `writer` as it arrives.

    Raises:
        DataError: an answer could not be stored (disk full); what was stored before is kept.
        ConfigError, ModelCallError: no item can succeed.
    """
    with Progress("generate", len(requests)) as progress:

        def on_done(index: int, outcome: Outcome) -> None:
            writer.store(as_response(requests[index], outcome))
            progress.advance(isinstance(outcome, Failure))

        chat.complete(requests, on_done)


def as_response(request: Request, outcome: Outcome) -> Response | FailedResponse:
    """What the run folder keeps of an outcome."""
    if isinstance(outcome, Failure):
        return FailedResponse(request.id, request.sample, outcome)
    return Response(
        request.id,
        request.sample,
        outcome.text,
        outcome.finish_reason,
        outcome.usage,
        outcome.thinking,
        outcome.request_id,
    )

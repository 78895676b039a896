"""Ask a model for the answers that a run still lacks, and store each as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.protocol import Chat, Message, Outcome, Request, Sampling, request_seed
from h2htalk.chat.store.call_store import StageCalls
from h2htalk.data.responses import Answers, Failure, Response, strip_thinking
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.progress import Progress

GENERATE = "generate"  # the stage of a run's answers in its call store
# After so many empty replies the run stops: the others, which may cost money, would be empty too.
STARVED_REPLIES = 8

PromptOf = Callable[[Scenario], tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class MissingRequests(Sequence[Request]):
    """The calls that a run still lacks, in split order: samples that were never asked, then those that failed, as a few
    that always fail must not pause each restart before the others are asked.

    A request is built when it is accessed: thousands of prompts with the same persona and SAP would fill the memory.
    """

    spec: EvaluateSpec
    prompt_of: PromptOf
    missing: tuple[tuple[Scenario, int], ...]

    @classmethod
    def of(
        cls, scenarios: Sequence[Scenario], spec: EvaluateSpec, prompt_of: PromptOf, answers: Answers
    ) -> MissingRequests:
        samples = ((scenario, sample) for scenario in scenarios for sample in range(spec.samples))
        missing = [(s, k) for s, k in samples if not isinstance(answers.get((s.id, k)), Response)]
        return cls(spec, prompt_of, tuple(sorted(missing, key=lambda one: (one[0].id, one[1]) in answers)))

    def __len__(self) -> int:
        return len(self.missing)

    @overload
    def __getitem__(self, index: int) -> Request: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Request]: ...

    def __getitem__(self, index: int | slice) -> Request | Sequence[Request]:
        if isinstance(index, slice):
            return replace(self, missing=self.missing[index])
        scenario, sample = self.missing[index]
        sampling = Sampling(
            temperature=self.spec.sampling_temperature,
            top_p=self.spec.top_p,
            max_tokens=self.spec.max_tokens or SUBTASKS[scenario.subtask].max_tokens,
            seed=request_seed(self.spec.seed, scenario.id, sample),
            thinking=self.spec.thinking,
        )
        return Request(scenario.id, self.prompt_of(scenario), sampling, sample)


def generate(chat: Chat, requests: MissingRequests, calls: StageCalls) -> None:
    """Send the requests; every outcome is stored in `calls` as it arrives.

    Args:
        chat: an open model.
        requests: the requests that the run lacks.
        calls: in the run's call store.

    Raises:
        DataError: an answer could not be stored (disk full); what was stored before is kept.
        ConfigError, ModelCallError: no item can succeed, or the first replies are all cut before their first
            word (a model that reasons within the reply budget).
    """
    hungry = True  # no reply with text has arrived
    starved = 0
    with Progress("generate", len(requests), money=calls.spent) as progress:

        def on_done(index: int, outcome: Outcome) -> None:
            nonlocal hungry, starved
            if not calls.paid or isinstance(outcome, Failure):  # a paid reply is stored with its cost
                scenario, sample = requests.missing[index]
                calls.put(scenario.id, sample, outcome)
            progress.advance(isinstance(outcome, Failure))
            if hungry and not isinstance(outcome, Failure):
                hungry = outcome.finish_reason == "length" and not strip_thinking(outcome.text)
                starved += hungry
                if hungry and starved == STARVED_REPLIES:
                    raise _starved(requests.spec)

        chat.complete(requests, on_done)


def _starved(spec: EvaluateSpec) -> ConfigError:
    return ConfigError(
        f"the first {STARVED_REPLIES} replies of {spec.model} were cut before their first word: the model reasons "
        "first; add tokens for it with --thinking 2048, or switch it off with --thinking 0, and choose a new --out"
    )

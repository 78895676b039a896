"""The specification of judging a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.data.arguments import PathText, check_fields
from h2htalk.errors import ConfigError, quoted

Scope = Literal["levels", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """Which judges read which answers of a run.

    Attributes:
        run: the run folder, scored.
        judges: `ENGINE:NAME` of each; several are a panel, whose mean counts.
        scope: `levels` judges itinerary levels I to III (Eq. 3), `all` every subtask.
        judgements: k, how many judgements of each answer a judge gives; more than one needs a temperature.
        temperature: 0 is greedy; models whose API takes none draw by themselves.
        thinking: tokens of reasoning besides the reply.
        reverse: put the qualities of the rubric in the reverse order, which shows how much their order matters.
        prompts: a folder of templates that replace bundled ones.
        repeat_unscored: ask again for judgements whose reply could not be read; the newest reply counts.
        batch: send batch jobs at half the price. concurrency: calls in flight. timeouts are the engines' own.
        max_cost: US dollars that all judging of this run may cost, possibly paid calls included.
        prices: a price file that replaces bundled prices.
    """

    run: PathText
    judges: tuple[str, ...]
    scope: str = "levels"
    judgements: int = 1
    temperature: float = 0.0
    thinking: int | None = None
    reverse: bool = False
    prompts: PathText | None = None
    repeat_unscored: bool = False
    batch: bool = False
    concurrency: int = 32
    max_cost: float | None = None
    prices: PathText | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        if not self.judges:
            raise ConfigError("--judge is missing; name a model, such as openai:gpt-4o")
        if len(set(self.judges)) < len(self.judges):
            raise ConfigError("--judge: one judge is named twice; for several judgements of one use --judgements")
        if self.scope not in get_args(Scope):
            raise ConfigError(f"--scope {quoted(self.scope)}: choose from {', '.join(get_args(Scope))}")
        if not 1 <= self.judgements <= 100:
            raise ConfigError(f"--judgements is {self.judgements}; it must be 1 to 100")
        if not 0 <= self.temperature <= 2:
            raise ConfigError(f"--temperature is {self.temperature}; it must be 0 to 2")
        if self.concurrency < 1:
            raise ConfigError(f"--concurrency is {self.concurrency}; it must be 1 or more")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ConfigError(f"--max-cost is {self.max_cost}; it must be 0 or more")
        for judge in self.judges:
            engine, _ = parse_model(judge)
            if self.judgements > 1 and self.temperature_of(judge) == 0:
                raise ConfigError(
                    f"--judgements {self.judgements} with temperature 0 would give the same judgement each time; set "
                    "--temperature, such as 1"
                )
            if self.batch and not engine.batches:
                raise ConfigError(f"--batch: {engine.name} has no batches; leave it out")
            if self.thinking is not None and not engine.reasons:
                raise ConfigError(f"--thinking: {engine.name} does not reason; leave it out")

    @property
    def path(self) -> Path:
        return Path(self.run)

    def temperature_of(self, judge: str) -> float | None:
        """The sampling temperature; None where the model's API takes none."""
        return None if ENGINES[judge.partition(":")[0]].sampling == "none" else self.temperature

"""The specification of judging a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.data.arguments import PathText, check_fields
from h2htalk.errors import ConfigError

Scope = Literal["levels", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """Which judges read which answers of a run.

    A field's description is the help of its option.

    Attributes:
        run: the run folder, scored.
        judges: `ENGINE:NAME` of each; several are a panel, whose mean counts.
        batch: as of `EvaluateSpec`; timeouts are the engines' own.
    """

    run: PathText
    judges: tuple[str, ...]
    scope: Annotated[Scope, Field(description="levels (itinerary levels I to III, Eq. 3) or all subtasks.")] = "levels"
    judgements: Annotated[
        int, Field(ge=1, le=100, description="Judgements of each answer by each judge; above 1 needs a temperature.")
    ] = 1
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False, description="0 is greedy.")] = 0.0
    thinking: Annotated[int | None, Field(ge=0, description="Tokens of reasoning besides the reply.")] = None
    reverse: Annotated[bool, Field(description="Put the rubric's qualities in reverse order.")] = False
    prompts: Annotated[PathText | None, Field(description="A folder of templates that replace bundled ones.")] = None
    repeat_unscored: Annotated[bool, Field(description="Ask again where a reply could not be read.")] = False
    batch: Annotated[bool, Field(description="Send batch jobs (openai:, anthropic:).")] = False
    concurrency: Annotated[int, Field(ge=1, description="Requests in flight.")] = 32
    max_cost: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="US dollars that all judging here may cost.")
    ] = None
    prices: Annotated[PathText | None, Field(description="A price file that replaces bundled prices.")] = None

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        if not self.judges:
            raise ConfigError("--judge is missing; name a model, such as openai:gpt-4o")
        if len(set(self.judges)) < len(self.judges):
            raise ConfigError("--judge: one judge is named twice; for several judgements of one use --judgements")
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

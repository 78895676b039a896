"""The policy of a gate: its criteria, their limits, and the default for each study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.benchmark.observations import COUNTS, SCALES, Observation, scored
from h2htalk.benchmark.observed_run import COST, MAIN_FIGURES
from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record
from h2htalk.errors import ConfigError

# Measures of a whole run, with their units: compared with a limit and nothing else.
MEASURES = {COST: "US dollars", "latency_median": "seconds", "latency_95": "seconds"}
# Figures of which less is better; of all others more is.
LOWER = ("violation", "over_refusal", "tokens", "refused", "cut", *MEASURES)


def is_lower_better(figure: str) -> bool:
    """Whether less of a figure is better."""
    return figure in LOWER or figure.startswith("must_not")


class Criterion(BaseModel):
    """One figure, and what it is held against."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    figure: str = Field(min_length=1)  # docs/how-to/gate-in-ci.md lists them
    relative: bool = True  # whether it is held against the reference run
    max: float | None = Field(default=None, allow_inf_nan=False)  # the gate says no above it
    min: float | None = Field(default=None, allow_inf_nan=False)  # and below it
    # The gate also says no unless the run is shown to be less than so much worse.
    non_inferior: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _limits_cost(self) -> Criterion:
        """Refuse what could never say no."""
        if self.figure in MEASURES and (
            self.max is None or self.min is not None or self.non_inferior is not None
        ):
            raise ValueError(
                f"{self.figure} needs max: it is compared with a limit and nothing else"
            )
        if not self.relative and (self.non_inferior is not None or not self.limits):
            raise ValueError(
                "relative = false leaves out the reference run: name max or min, and no non_inferior"
            )
        least, most = SCALES.get(
            self.figure, (0.0, math.inf if self.figure in (*MEASURES, *COUNTS) else 1.0)
        )
        if not (self.max is None or least <= self.max < most) or not (
            self.min is None or least < self.min <= most
        ):
            raise ValueError(
                f"{self.figure} is {least:g} to {most:g}, of which max and min must leave some out"
            )
        if self.non_inferior is not None and self.non_inferior >= most - least:
            raise ValueError(
                f"non_inferior must be below {most - least:g}: nothing can be that much worse"
            )
        return self

    @property
    def limits(self) -> dict[str, float]:
        """`max` and `min`, those that are given."""
        return {
            name: end for name, end in (("max", self.max), ("min", self.min)) if end is not None
        }

    @property
    def lower_is_better(self) -> bool:
        return is_lower_better(self.figure)


class Policy(BaseModel):
    """A gate's criteria.

    Attributes:
        alpha: of all tests together (Holm), one-sided.
        arm: of studies, the arm that is held.
        needs: what a judge needs, beside its planted replies, for its answers to count.
        agreement: the lowest kappa of a calibrated judge and people.
        criteria: the figures, and what each is held against.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: float = Field(default=0.05, gt=0, le=0.5)
    arm: str = ""
    needs: Literal["", "calibrated"] = ""
    agreement: float = Field(default=0.7, gt=0, le=1)
    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _agreement_is_used(self) -> Policy:
        """Refuse an agreement that nothing needs."""
        if "agreement" in self.model_fields_set and not self.needs_calibrated:
            raise ValueError('agreement is of a calibrated judge: write needs = "calibrated" too')
        return self

    @property
    def needs_calibrated(self) -> bool:
        """Whether the answers of a judge count only where people's answers calibrate it."""
        return self.needs == "calibrated"


def read_policy(path: Path) -> Policy:
    """Read `gate.toml`: `alpha`, `arm` and a table `[[criteria]]` a criterion. Raises ConfigError."""
    return read_record(Policy, read_toml(path), str(path), error=ConfigError)


def default_policy(study: str, figures: Mapping[str, Sequence[Observation]]) -> Policy:
    """The policy where none is given: the figures of a study's safety or skill, or S of every subtask.

    A study's figure that is unscored or not there is among them, so that it is missed; without an embedder the lexical
    mean is taken for S.
    """
    chosen = list(MAIN_FIGURES.get(study, ()))
    if not study:
        kind = (
            "s."
            if any(name.startswith("s.") and scored(rows) for name, rows in figures.items())
            else "lexical."
        )
        chosen = sorted(name for name in figures if name.startswith(kind))
    if not chosen:
        raise ConfigError(
            "the run has none of the figures that a gate holds by default; name some in --policy"
        )
    return Policy(criteria=tuple(Criterion(figure=name) for name in chosen))

"""Settings of review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from h2htalk.curation.setting_types import Dollars, FilePath, ModelName, Share


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """Who reviews, and what people decide.

    Attributes:
        model: the reviewer.
        samples: evidence samples k in each order (FairEval).
        margin: two answers whose scores (1 to 10) differ by at most this are a tie.
        escalate: share of the compared candidates, those of the highest entropy, that people decide.
        audit: random share of all candidates that people decide.
        accept: least mean of the criteria (1 to 5) of an accepted candidate.
        temperature: of the comparisons.
        gold: a file of comparisons with known answers; a reviewer compares candidates only if it beats chance on them.
    """

    model: ModelName = ""
    samples: Annotated[int, Field(ge=1, le=100)] = 3
    margin: Annotated[float, Field(ge=0, le=9)] = 0.0
    escalate: Share = 0.2
    audit: Share = 0.05
    accept: Annotated[float, Field(ge=1, le=5)] = 4.0
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    max_cost: Dollars | None = None
    batch: bool = False
    gold: FilePath = ""

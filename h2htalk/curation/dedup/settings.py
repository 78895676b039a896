"""Settings of dedup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from h2htalk.curation.setting_types import SplitName


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """`contamination_splits`: splits whose items must not be in the result; `threshold`: the similarity from which two
    dialogues are duplicates."""

    contamination_splits: tuple[SplitName, ...] = ("mini",)
    # A lower threshold would change next to nothing: each side must have a similarity of 0.6 in any case.
    threshold: Annotated[float, Field(ge=0.65, le=1)] = 0.7

"""Settings of compose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from h2htalk.curation.setting_types import Dollars, ModelName


@dataclass(frozen=True, slots=True)
class ComposeSettings:
    """What is composed, and by which model.

    Attributes:
        model: writes inputs and references that a dialogue does not contain; empty: only extract from dialogues.
        personas: the companions of the scenarios; the dialogue's id decides which.
        subtasks: to compose; empty: all.
        references: that the model writes for a scenario; at most as many replies of other dialogues to the same
            question become references too.
        batch: send the calls as batch jobs of a hosted model, at half the price.
    """

    model: ModelName = ""
    personas: tuple[str, ...] = ("nora", "ren")
    subtasks: tuple[str, ...] = ()
    references: Annotated[int, Field(ge=1, le=100)] = 1
    max_cost: Dollars | None = None
    batch: bool = False

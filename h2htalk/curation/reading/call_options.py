"""How a guard, or the reviewer, is asked from the command line: options of several commands, and their help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.data.settings import PathText


def about(text: str, **limits: Any) -> Any:
    """The help of an option, and the limits of its values."""
    return Field(description=text, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallOptions:
    """How a model that reads is called."""

    max_cost: Annotated[
        float | None,
        about(
            "US dollars that all calls kept there may cost.",
            ge=0,
            le=1_000_000,
            allow_inf_nan=False,
        ),
    ] = None
    batch: Annotated[bool, about("Send batch jobs (openai:, anthropic:).")] = False
    prompts: Annotated[
        PathText | None, about("A folder of templates that replace bundled ones.")
    ] = None
    prices: Annotated[PathText | None, about("A price file that replaces bundled prices.")] = None
    engine_options: Annotated[
        Mapping[str, str],
        about("KEY=VALUE, an option of the engine itself; may be repeated.", title="engine_option"),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCallOptions(ModelCallOptions):
    """The form of a guard's question, and how its model is called."""

    form: Annotated[
        Literal["auto", "qwen3guard", "llama_guard", "question"],
        about(
            "How a guard is asked, as guard_form in [safety]: auto, qwen3guard, llama_guard or question."
        ),
    ] = "auto"

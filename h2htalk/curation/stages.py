"""The one table of curation stages. Adding one is a record here, with its settings, and the module that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.curation.gather.settings import GatherSettings
from h2htalk.curation.setting_types import Dollars, FilePath, ModelName, Share, SplitName
from h2htalk.errors import ConfigError, quoted, suggest

OperatorName = Literal["surrogate", "mask", "hash", "redact", "keep"]


@dataclass(frozen=True, slots=True)
class AnonymizeSettings:
    """How personal data are found and replaced.

    Attributes:
        allow: names that stay, beside the bundled lists.
        recognizers: a registry file in Presidio's format with recognisers of the user's own.
        trust_recognizers: the registry may name classes of the user's own code.
        operators: what stands in for the values of a type: a seeded surrogate (as for types that are not named), a
            mask, a hash, nothing, or the value itself.
        name_keys: keys of a record, of its `metadata` or of its `user` that hold the user's name, beside `USER_NAMES`;
            the name is replaced everywhere in the dialogue.
    """

    allow: tuple[str, ...] = ()
    recognizers: FilePath = ""
    trust_recognizers: bool = False
    operators: Mapping[str, OperatorName] = field(default_factory=dict)
    name_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """`guard`: a chat model that decides undecided dialogues and replies in the form of Qwen3Guard, such as
    `vllm:Qwen/Qwen3Guard-Gen-4B`; `sensitive`: a file of your own politically sensitive terms; `explicit`: whether
    sexual content between adults removes a dialogue, or tags it for annotators who agreed to read it."""

    guard: ModelName = ""
    sensitive: FilePath = ""
    explicit: Literal["remove", "tag"] = "remove"
    max_cost: Dollars | None = None


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """`contamination_splits`: splits whose items must not be in the result; `threshold`: the similarity from which two
    dialogues are duplicates."""

    contamination_splits: tuple[SplitName, ...] = ("mini",)
    # A lower threshold would change next to nothing: each side must have a similarity of 0.6 in any case.
    threshold: Annotated[float, Field(ge=0.65, le=1)] = 0.7


@dataclass(frozen=True, slots=True)
class ComposeSettings:
    """What is composed, and by which model.

    Attributes:
        model: writes inputs and references that a dialogue does not contain; without it a run ends before this stage.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A curation stage, and what the rest of the package must know of it.

    Attributes:
        name: of its folder in the workspace, of its section in the TOML file, and in commands.
        module: its `make_stage(spec, workspace, key)` returns a `run.StageRun`.
        settings: the record of its TOML section.
        reads: what its input records are: `dialogues` or `candidates`.
        required: the setting without which a run ends before this stage; empty for none. `example`: a value of it.
        compares: whether the result for a record depends on other records: an erasure then removes all parts.
        temporary: files and folders in its folder that are removed when the stage is finished.
    """

    name: str
    module: str
    settings: type[Any]
    reads: str = "dialogues"
    required: str = ""
    example: str = '"anthropic:claude-sonnet-5"'
    compares: bool = False
    temporary: tuple[str, ...] = ()

    def make(self, *arguments: Any) -> Any:
        """Call the module's `make_stage`."""
        return import_module(self.module).make_stage(*arguments)


# In the order in which records pass through them.
STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(name="gather", module="h2htalk.curation.gather.stage", settings=GatherSettings),
        Stage(name="anonymize", module="h2htalk.curation.anonymize.stage", settings=AnonymizeSettings),
        Stage(name="safety", module="h2htalk.curation.safety.stage", settings=SafetySettings),
        Stage(
            name="dedup",
            module="h2htalk.curation.dedup.stage",
            settings=DedupSettings,
            compares=True,
            temporary=("duplicates.jsonl", "work"),
        ),
        Stage(
            name="compose",
            module="h2htalk.curation.compose.stage",
            settings=ComposeSettings,
            required="model",
            example='"anthropic:claude-sonnet-5", or "embedded", which costs nothing,',
        ),
        Stage(
            name="review",
            module="h2htalk.curation.review.stage",
            settings=ReviewSettings,
            reads="candidates",
            required="model",
            compares=True,
        ),
    )
}
FIRST_STAGE = next(iter(STAGES))


def find_stage(name: str) -> Stage:
    """The record of a stage; raises ConfigError for an unknown name."""
    if name not in STAGES:
        raise ConfigError(f"no stage {quoted(name)}; {suggest(name, STAGES)}choose from {', '.join(STAGES)}")
    return STAGES[name]


def stages_from(name: str) -> list[str]:
    """The names of a stage and of those after it, in order."""
    names = list(STAGES)
    return names[names.index(find_stage(name).name) :]


def stage_before(name: str) -> str:
    """The name of the stage whose output a stage reads; empty for the first one."""
    names = ["", *STAGES]
    return names[names.index(find_stage(name).name) - 1]

"""The one table of curation stages. Adding a stage is a record here and the module that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from h2htalk.curation.gather.settings import GatherSettings
from h2htalk.curation.stage_settings import (
    AnonymizeSettings,
    ComposeSettings,
    DedupSettings,
    ReviewSettings,
    SafetySettings,
)
from h2htalk.errors import ConfigError, quoted, suggest


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A curation stage, and what the rest of the package must know of it.

    Attributes:
        name: of its folder in the workspace, of its section in the TOML file, and in commands.
        module: its `make_stage(spec, workspace, key)` returns a `pipeline.StageRun`.
        settings: the record of its TOML section.
        reads: what its input records are: `dialogues` or `candidates`.
        required: the setting without which a run ends before this stage; empty for none.
        compares: whether the result for a record depends on other records: an erasure then removes all parts.
        temporary: files and folders in its folder that are removed when the stage is finished.
    """

    name: str
    module: str
    settings: type[Any]
    reads: str = "dialogues"
    required: str = ""
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
        Stage(name="compose", module="h2htalk.curation.compose.stage", settings=ComposeSettings),
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

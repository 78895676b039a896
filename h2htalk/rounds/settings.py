"""Settings of a round: kind, items, annotators, overlap, and how annotators are cared for."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2htalk.data.files import read_toml
from h2htalk.data.records import PathText, read_record, strict_record
from h2htalk.errors import ConfigError
from h2htalk.rounds.questions import Kind

# Default annotators per item: the paper's 20 crowd evaluators and three specialists (section 3.2).
ANNOTATORS = "CSV file of annotators: name, languages, crisis (yes: agreed to read about crises)."
OVERLAP: Mapping[Kind, int] = {"crowd": 20, "expert": 3, "adjudication": 1, "safety": 3}
# Placeholder annotators per language of a round without a list of annotators.
PLACEHOLDERS: Mapping[Kind, int] = {"crowd": 20, "expert": 20, "adjudication": 1, "safety": 3}


@strict_record
class Adaptive:
    """Adaptive overlap: stop requesting annotators for an item once its votes are clear.

    An item is clear when it has `minimum` annotators and one label leads by `lead` votes (docs/measurements.md).
    """

    on: bool = False
    minimum: Annotated[int, Field(ge=1, le=1000)] = 3
    lead: Annotated[int, Field(ge=1, le=1000)] = 4


@strict_record
class Care:
    """Sessions have at most `session_items` items, and at most the share `crisis_share` (0 to 1) about a crisis."""

    session_items: Annotated[int, Field(ge=1, le=1000)] = 20
    crisis_share: Annotated[float, Field(ge=0, le=1)] = 0.2


@strict_record
class Ties:
    """Whether Dawid-Skene decides ties: for a tied label with at least this posterior (0.5 to 1); None: never."""

    dawid_skene: Annotated[float, Field(ge=0.5, le=1)] | None = None


@strict_record
class ArgillaSettings:
    """Prefix of the workspaces' names; empty for none.

    The server's address and key are read from ARGILLA_API_URL and ARGILLA_API_KEY, never from a file.
    """

    workspace: str = ""


@strict_record
class RoundSpec:
    """Specification of a round.

    Attributes:
        kind: which questions are asked (`questions.QUESTIONS`).
        items: source of the items (`item_sources.read_items`).
        where: platform, `spreadsheets`, `argilla` or `label-studio`.
        annotators: CSV file of annotators; empty for placeholder annotators.
        overlap: annotators per item; 0 for the default of the kind, or for everybody if every item is gold (a pilot).
        seed: of the assignment and order of items.
        suggest: whether a model's suggestions are shown beside the questions.
        guidelines: folder with `en.md` and `zh.md` that replace the package's guidelines.
        minutes: paid minutes per item.
        hourly: pay per hour of participants of Prolific, in the currency of the account; 0 for no file of bonuses.
        pass_gold: accuracy on gold items, 0 to 1, that qualifies an annotator.
        status: use only reviewed candidates with one of these statuses (`needs_people`); empty for all.
    """

    kind: Kind
    items: PathText
    where: Annotated[str, Field(description="Platform: spreadsheets, argilla or label-studio.")] = "spreadsheets"
    annotators: Annotated[PathText, Field(description=ANNOTATORS)] = ""
    overlap: Annotated[
        int, Field(ge=0, le=1000, description="Annotators per item; default: crowd 20, expert and safety 3, else 1.")
    ] = 0
    seed: Annotated[int, Field(description="Seed of the assignment and order of items.")] = 0
    suggest: bool = False
    guidelines: PathText = ""
    minutes: Annotated[float, Field(ge=0, le=600)] = 1.0
    hourly: Annotated[float, Field(ge=0, le=1000)] = 0.0
    pass_gold: Annotated[float, Field(ge=0, le=1)] = 0.7
    status: tuple[str, ...] = ()
    adaptive: Adaptive = field(default_factory=Adaptive)
    care: Care = field(default_factory=Care)
    ties: Ties = field(default_factory=Ties)
    argilla: ArgillaSettings = field(default_factory=ArgillaSettings)

    @property
    def annotators_per_item(self) -> int:
        """The overlap, or the default of the kind; the maximum in an adaptive round."""
        return self.overlap or OVERLAP[self.kind]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> RoundSpec:
        """Validate a stored specification or a TOML table; raise ConfigError starting with `where`."""
        unknown = "docs/reference/rounds.md lists them"
        spec = read_record(cls, raw, where, error=ConfigError, unknown=unknown)
        if spec.adaptive.on and spec.adaptive.minimum > spec.annotators_per_item:
            raise ConfigError(
                f"{where}: adaptive.minimum is {spec.adaptive.minimum}, above the overlap of {spec.annotators_per_item}"
            )
        return spec


def make_spec(kind: str, items: str, options: Mapping[str, Any], settings: Path | None = None) -> RoundSpec:
    """Make a specification from a command's options, which override those of the TOML file `settings`."""
    stored, where = (read_toml(settings), str(settings)) if settings is not None else ({}, "the command")
    for key in ("annotators", "guidelines"):
        if isinstance(stored.get(key), str) and stored[key] and settings is not None:
            stored[key] = str(settings.resolve().parent / Path(stored[key]).expanduser())
    given = {**stored, **options}
    # An absolute path, so that the command can be repeated from another folder; the name of a split is no path.
    # os.path: pathlib raises on a name that is too long.
    source = str(Path(items).resolve()) if os.path.exists(items) else items
    if options.get("annotators"):
        given["annotators"] = str(Path(options["annotators"]).resolve())
    return RoundSpec.from_dict({**given, "kind": kind, "items": source}, where)

"""Settings of a round: kind, items, annotators, overlap, and how annotators are cared for."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.settings import PathText
from h2htalk.errors import ConfigError, quoted
from h2htalk.rounds.questions import READING_KINDS, Ask, Kind
from h2htalk.text.help_lines import read_help_lines

# One line without white space at its ends.
LINE = r"^(\S([^\r\n]*\S)?)?$"
# Default annotators per item: the paper's 20 crowd evaluators and three specialists (section 3.2).
ANNOTATORS = "CSV file of annotators: name, languages, crisis (yes: agreed to read about crises)."
OVERLAP: Mapping[Kind, int] = {"crowd": 20, "expert": 3, "adjudication": 1, "safety": 3}
# Placeholder annotators per language of a round without a list of annotators.
PLACEHOLDERS: Mapping[Kind, int] = {"crowd": 20, "expert": 20, "adjudication": 1, "safety": 3}

# Tolerance for floating point: 0.2 of 10 must be two.
TOLERANCE = 1e-9
PLATFORM = "spreadsheets"  # where a round is that names none


@strict_record
class Adaptive:
    """Adaptive overlap: stop requesting annotators for an item once its votes are clear (docs/measurements.md).

    Attributes:
        on: whether overlap is adaptive.
        minimum: annotators that an item has at least.
        lead: votes by which one label must lead.
    """

    on: bool = False
    minimum: Annotated[int, Field(ge=1, le=1000)] = 3
    lead: Annotated[int, Field(ge=1, le=1000)] = 4


@strict_record
class Care:
    """How annotators are spared.

    Attributes:
        session_items: items of a session at most.
        crisis_share: the largest share of a session's items, 0 to 1, that is about a crisis.
        country: where the annotators live (ISO 3166-1, `GB`), whose help lines come first; empty if they live anywhere.
        unread: what happens with items that nobody has read and that nothing points at: `warn` says so above
            each of them, `withhold` also gives them only to annotators who agreed to crises.
    """

    session_items: Annotated[int, Field(ge=1, le=1000)] = 20
    crisis_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    country: Annotated[str, Field(pattern=r"^([A-Z]{2})?$")] = ""
    unread: Literal["warn", "withhold"] = "warn"

    @property
    def session_crises(self) -> int:
        """The largest number of items about a crisis in a session, that of a full one; one is always allowed."""
        in_full_session = int(self.session_items * self.crisis_share + TOLERANCE)
        return max(in_full_session, 1 if self.crisis_share else 0)


@strict_record
class Ties:
    """Whether Dawid-Skene decides ties.

    Attributes:
        dawid_skene: it decides for a tied label with at least this posterior (0.5 to 1); None: never.
    """

    dawid_skene: Annotated[float, Field(ge=0.5, le=1)] | None = None


@strict_record
class Sample:
    """A sample of the dialogues that a safety stage kept without tag, note or hint (`h2htalk curate sample`).

    `keep`: how many of each language; 0: a safety round of replies, as without a sample. `seed`: of the draw.
    """

    keep: Annotated[int, Field(ge=0, le=100_000)] = 0
    seed: int = 0


@strict_record
class ArgillaSettings:
    """Where on Argilla a round lies.

    The server's address and key are read from ARGILLA_API_URL and ARGILLA_API_KEY, never from a file.

    Attributes:
        workspace: prefix of the workspaces' names; empty for none.
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
        hourly: pay per hour of participants of Prolific; 0 for no file of bonuses.
        reward: what the study on Prolific pays for a submission that is approved; it is taken off the bonus.
        currency: of `hourly` and `reward`, three capital letters (`GBP`); empty for that of the account.
        completion: code or link (https://...) for annotators who are done. Workbooks show it when all their items are
            answered or skipped; on a server the guidelines end with it.
        contact: whom annotators ask, and tell that they withdraw: a name with an address; empty for who invited them.
        ethics: the ethics review of the study, for the guidelines; empty for none.
        pass_gold: accuracy on gold items, 0 to 1, that qualifies an annotator.
        status: use only reviewed candidates with one of these statuses (`needs_people`); empty for all.
        ask: what a crowd or expert round asks besides whether something is harmful or about a real person: `minor`,
            `explicit`, `crisis`.
        sample: of a safety round over whole dialogues of a safety stage, how many are drawn.
        planted: whether planted items show who counts as a reader, in crowd and expert rounds and in
            samples (`planted.py`).
        new: whether only items are used that no round of this kind holds over the same source (`new_items.py`).
        spread: whether items about a crisis that exceed their share are left to a later round (`surplus.py`).
        adaptive: whether an item whose votes are clear gets no more annotators.
        care: how annotators are spared.
        ties: whether statistics decide ties.
        argilla: where on a server of Argilla the round lies.
    """

    kind: Kind
    items: PathText
    where: Annotated[str, Field(description="Platform: spreadsheets, argilla or label-studio.")] = (
        PLATFORM
    )
    annotators: Annotated[PathText, Field(description=ANNOTATORS)] = ""
    overlap: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="Annotators per item; default: crowd 20, expert and safety 3, else 1.",
        ),
    ] = 0
    seed: Annotated[int, Field(description="Seed of the assignment and order of items.")] = 0
    suggest: bool = False
    guidelines: PathText = ""
    minutes: Annotated[float, Field(ge=0, le=600)] = 1.0
    hourly: Annotated[float, Field(ge=0, le=1000)] = 0.0
    reward: Annotated[float, Field(ge=0, le=10000)] = 0.0
    currency: Annotated[str, Field(pattern=r"^([A-Z]{3})?$")] = ""
    completion: Annotated[str, Field(pattern=r"^\S*$", max_length=300)] = ""
    contact: Annotated[str, Field(pattern=LINE, max_length=150)] = ""
    ethics: Annotated[str, Field(pattern=LINE, max_length=150)] = ""
    pass_gold: Annotated[float, Field(ge=0, le=1)] = 0.7
    status: tuple[str, ...] = ()
    ask: tuple[Ask, ...] = ()
    sample: Sample = field(default_factory=Sample)
    planted: bool = True
    new: Annotated[
        bool,
        Field(description="Use only items that no round of this kind over the same source holds."),
    ] = False
    spread: Annotated[
        bool,
        Field(description="Leave items about a crisis that exceed their share to a later round."),
    ] = False
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
        if spec.care.country and spec.care.country not in read_help_lines().by_code:
            raise ConfigError(
                f"{where}: care.country: no country {quoted(spec.care.country)} in the help directory; use the two "
                "capital letters of ISO 3166-1, such as GB, or leave it out"
            )
        if spec.ask and spec.kind not in READING_KINDS:
            raise ConfigError(
                f"{where}: ask: a round of {spec.kind} asks no such questions; leave it out"
            )
        if spec.sample.keep and spec.kind != "safety":
            raise ConfigError(
                f"{where}: sample: a round of {spec.kind} draws none; use a round of safety"
            )
        if spec.new and (spec.kind == "adjudication" or spec.sample.keep):
            what = "a sample" if spec.sample.keep else "an adjudication"
            raise ConfigError(f"{where}: new: {what} takes the items that it has to; leave it out")
        if spec.adaptive.on and spec.adaptive.minimum > spec.annotators_per_item:
            raise ConfigError(
                f"{where}: adaptive.minimum is {spec.adaptive.minimum}, above the overlap of {spec.annotators_per_item}"
            )
        return spec


def describe_consent(spec: RoundSpec) -> list[str]:
    """Return a message on what the guidelines cannot say to annotators before they begin."""
    missing = [name for name in ("contact", "ethics") if not getattr(spec, name)]
    if not missing:
        return []
    settings = {"contact": "whom annotators ask", "ethics": "which ethics review the study has"}
    named = " and ".join(f"`{name}` ({settings[name]})" for name in missing)
    return [
        f"the settings have no {named}, and the guidelines say so; to name it, write a file for --settings as "
        "docs/reference/rounds.md describes"
    ]


def is_link(completion: str) -> bool:
    """Return whether the setting `completion` is a link, not a code."""
    return completion.startswith(("https://", "http://"))


def make_spec(
    kind: str, items: str, options: Mapping[str, Any], settings: Path | None = None
) -> RoundSpec:
    """Make a specification from a command's options, which override those of the TOML file `settings`."""
    stored, where = (
        (read_toml(settings), str(settings)) if settings is not None else ({}, "the command")
    )
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

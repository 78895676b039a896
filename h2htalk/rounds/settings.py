"""What a round is opened with: of what kind, on what, by whom, how many answers, and how its annotators are cared
for.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic import with_config as configured

from h2htalk.errors import ConfigError, RoundError, quoted
from h2htalk.rounds.questions import Kind, find_kind

# Answers an item, where nothing else is said: the paper's 20 evaluators and three of its specialists (section 3.2).
OVERLAP: Mapping[Kind, int] = {"crowd": 20, "expert": 3, "adjudication": 1, "safety": 3}
# Annotators that a round without a list of its own makes up, a language.
PANEL: Mapping[Kind, int] = {"crowd": 20, "expert": 20, "adjudication": 1, "safety": 3}


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Stop asking where the votes are clear: after `minimum` answers or more, once one label leads by `lead` votes; or,
    with a `confidence` (0.5 to below 1), once it is so probable, were every annotator right with the chance `accuracy`.

    On two public sets a lead of 4 saves 31 to 54 % of the votes, for 0.1 to 1.1 points of a majority's accuracy and 0.5
    to 1.4 of Dawid-Skene's (docs/measurements.md).
    """

    on: bool = False
    minimum: Annotated[int, Field(ge=1, le=1000)] = 3
    lead: Annotated[int, Field(ge=1, le=1000)] = 4
    confidence: Annotated[float, Field(ge=0, le=0.9999)] = 0.0
    accuracy: Annotated[float, Field(ge=0.51, le=0.99)] = 0.7


@dataclass(frozen=True, slots=True)
class Care:
    """`session_items`: items at a time. `crisis_share`: of a session at most this share (0 to 1) speaks of a crisis."""

    session_items: Annotated[int, Field(ge=1, le=1000)] = 20
    crisis_share: Annotated[float, Field(ge=0, le=1)] = 0.2


@dataclass(frozen=True, slots=True)
class Ties:
    """`dawid_skene`: a tied label of at least this Dawid-Skene posterior (0.5 to 1) is decided; None: a tie stays one
    until one more answer or an adjudication settles it."""

    dawid_skene: Annotated[float, Field(ge=0.5, le=1)] | None = None


@dataclass(frozen=True, slots=True)
class ArgillaSettings:
    """`workspace`: prefix of the workspaces, the round's name where empty. The server's address and the key come from
    ARGILLA_API_URL and ARGILLA_API_KEY, never from a file."""

    workspace: str = ""


@dataclass(frozen=True, slots=True)
class RoundSpec:
    """A round to open.

    Attributes:
        kind: what is asked (`questions.QUESTIONS`).
        items: what about (`item_sources.read_items`).
        where: `spreadsheets` or `argilla`.
        format: of spreadsheets, `xlsx` or `csv`.
        annotators: a CSV file of them; empty: as many as `PANEL` says are made up.
        overlap: answers an item; 0: what `OVERLAP` says, and where every item is gold (a pilot) one of everybody.
        seed: of every draw: who gets what, in which order.
        suggest: show a model's answers beside the questions; blind without it.
        guidelines: a folder with `en.md` and `zh.md` in place of ours.
        minutes: that an item is paid for.
        pass_gold: accuracy on gold items, 0 to 1, from which an annotator is qualified.
        status: of reviewed candidates, only these (`needs_people`); empty for all.
    """

    kind: Kind
    items: str
    where: str = "spreadsheets"
    format: Literal["xlsx", "csv"] = "xlsx"
    annotators: str = ""
    overlap: Annotated[int, Field(ge=0, le=1000)] = 0
    seed: int = 0
    suggest: bool = False
    guidelines: str = ""
    minutes: Annotated[float, Field(ge=0, le=600)] = 1.0
    pass_gold: Annotated[float, Field(ge=0, le=1)] = 0.7
    status: tuple[str, ...] = ()
    adaptive: Adaptive = field(default_factory=Adaptive)
    care: Care = field(default_factory=Care)
    ties: Ties = field(default_factory=Ties)
    argilla: ArgillaSettings = field(default_factory=ArgillaSettings)

    @property
    def answers(self) -> int:
        """Answers that an item is to have; in an adaptive round at most."""
        return self.overlap or OVERLAP[self.kind]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> RoundSpec:
        """Read a stored specification, or the table of a TOML file; raises ConfigError that starts with `where`."""
        for record in (Adaptive, Care, Ties, ArgillaSettings, cls):
            configured(ConfigDict(extra="forbid"))(record)
        try:
            spec = TypeAdapter(cls).validate_json(json.dumps(raw, default=str), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(map(str, first["loc"]))
            if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
                raise ConfigError(
                    f"{where}: {name}: no such setting; docs/tutorials/annotation.md names them"
                ) from error
            raise ConfigError(f"{where}: {name}: {first['msg']}, not {quoted(first['input'])}") from error
        _check(spec, where)
        return spec


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with paths in it beside the file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not readable as TOML: {error}") from error
    base = path.resolve().parent
    for key in ("annotators", "guidelines"):
        if isinstance(raw.get(key), str) and raw[key]:
            raw[key] = str(base / Path(raw[key]).expanduser())
    return raw


def make_spec(kind: str, items: str, given: Mapping[str, Any], settings: Path | None = None) -> RoundSpec:
    """A specification from a command: what it names itself goes before what a TOML file says.

    Raises:
        RoundError, ConfigError: a kind, setting or number that cannot be.
    """
    stored = read_settings(settings) if settings is not None else {}
    where = str(settings) if settings is not None else "the command"
    # A path stays the same item source from wherever the command is repeated; a split's name is no path.
    place = str(Path(items).resolve()) if Path(items).exists() else items
    return RoundSpec.from_dict({**stored, **given, "kind": find_kind(kind), "items": place}, where)


def _check(spec: RoundSpec, where: str) -> None:
    """Settings that do not go together."""
    if 0 < spec.adaptive.confidence < 0.5:
        raise ConfigError(
            f"{where}: adaptive.confidence is {spec.adaptive.confidence}; it must be 0 or 0.5 and more"
        )
    if spec.adaptive.on and spec.adaptive.minimum > spec.answers:
        raise ConfigError(
            f"{where}: adaptive.minimum is {spec.adaptive.minimum}, above the overlap of {spec.answers}"
        )


def require_same(there: RoundSpec, asked: RoundSpec, where: Path) -> None:
    """Raise RoundError unless a round there was opened with what is asked for now."""
    other = asked.to_dict()
    names = [key for key, value in there.to_dict().items() if value != other[key]]
    if names:
        raise RoundError(
            f"{where}: this round was opened with another {', '.join(names)}; go on with that, or choose another --out"
        )

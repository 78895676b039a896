"""The specification of a release: one TOML file."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from h2htalk.curation.licences import find_licence
from h2htalk.curation.stages import FilePath, ReleaseName, SplitName, read_section
from h2htalk.data.files import read_json_object, read_toml
from h2htalk.data.records import Text, strict_record
from h2htalk.data.releases.release_folder import DEV
from h2htalk.data.scenario import Risk
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT
from h2htalk.errors import ConfigError, quoted, suggest

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=96)]
_Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
_Date = Annotated[
    str, AfterValidator(lambda text: text and datetime.date.fromisoformat(text).isoformat())
]
# Without control characters and direction marks.
_Homepage = Annotated[str, StringConstraints(pattern=r"^((https?://|mailto:)[^\s\p{C}]+)?$")]
_Contact = Annotated[
    str,
    StringConstraints(pattern=r"^((https?://|mailto:)[^\s\p{C}]+|[^\s\p{C}:@]+@[^\s\p{C}:@]+)?$"),
]
_Points = Annotated[float, Field(ge=1, le=5)]
_Count = Annotated[int, Field(ge=0, le=10_000_000)]
TOTAL = "total"
ALL: Literal["all"] = "all"  # in place of a number: whatever people accepted
# How many items a split gets of a subtask.
Quota = int | Literal["all"]
_Quota = _Count | Literal["all"]


@strict_record
class Acceptance:
    """What experts must have said of an item.

    Attributes:
        experts: how many of them.
        accuracy: the least mean of their ratings, 1 to 5.
        consistency: likewise.
        domain_compliance: likewise.
    """

    experts: Annotated[int, Field(ge=3, le=1000)] = 3
    accuracy: _Points = 3.5
    consistency: _Points = 3.5
    domain_compliance: _Points = 3.5


@strict_record
class CardSettings:
    """What only the owner knows, for the card; an empty text is a gap that the card names."""

    title: str = ""
    authors: tuple[Text, ...] = ()
    contact: _Contact = ""
    homepage: _Homepage = ""
    collection: str = ""
    recruitment: str = ""
    payment: str = ""
    demographics: str = ""
    intended_use: str = ""
    forbidden_use: str = ""
    risks: str = ""
    biases: str = ""
    limitations: str = ""
    maintenance: str = ""
    changes: str = ""
    citation: str = ""
    baselines: tuple[FilePath, ...] = ()
    analysis: FilePath = ""
    leaderboard: bool = False


@strict_record
class ReleaseSpec:
    """Specification of a release; docs/reference/releases.md says what each setting is."""

    name: _Name
    version: _Version
    licence: str
    workspace: FilePath
    description: str = ""
    rounds: tuple[FilePath, ...] = ()
    date: _Date = ""
    seed: int = 0
    quotas: Mapping[str, _Quota] = field(default_factory=dict)
    dev: _Count = 0
    previous: ReleaseName = ""
    cases: FilePath = ""
    personas: FilePath = ""
    exclude: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    crisis_risk: Mapping[str, Risk] = field(default_factory=dict)  # items, and their risk
    risk: Annotated[float, Field(gt=0, lt=1)] | None = None
    other_splits: tuple[SplitName, ...] = ("mini",)
    acceptance: Acceptance = field(default_factory=Acceptance)  # what experts must have said
    card: CardSettings = field(default_factory=CardSettings)  # what only the owner knows

    def quota_of(self) -> dict[str, Quota]:
        """Subtask -> items of `test`, and `dev` -> those of `dev`, unless that is 0.

        A subtask's quota is the one given for it, or `all` where `total` is, or else Table 1's number scaled to `total`
        by largest remainder.
        """
        total = self.quotas.get(TOTAL, TOTAL_COUNT)
        quotas: dict[str, Quota] = {}
        if isinstance(total, int):
            quotas.update(_scaled_to(total))
        else:
            quotas.update(dict.fromkeys(SUBTASKS, total))
        for name in SUBTASKS:
            if name in self.quotas:
                quotas[name] = self.quotas[name]
        if self.dev:
            quotas[DEV] = self.dev
        return quotas


def _scaled_to(total: int) -> dict[str, int]:
    """Table 1's numbers scaled to `total` items by largest remainder."""
    exact = {name: subtask.count * total / TOTAL_COUNT for name, subtask in SUBTASKS.items()}
    scaled = {name: int(share) for name, share in exact.items()}
    left = total - sum(scaled.values())
    by_remainder = sorted(exact, key=lambda name: scaled[name] - exact[name])
    for name in by_remainder[:left]:
        scaled[name] += 1
    return scaled


def read_release_spec(path: Path) -> ReleaseSpec:
    """Read a specification; paths in it are relative to the file. Raises ConfigError, which names the setting."""
    return _spec_of(read_toml(path, 1 << 22), path.resolve().parent, str(path))


def read_stored_spec(path: Path) -> ReleaseSpec:
    """Read the specification in a release's private folder; paths lead from where that is now, if something is there.

    Raises FileNotFoundError where there is none.
    """
    stored = read_json_object(path)
    place = stored.pop("place", str(path.parent))

    def moved(text: str) -> str:
        now = os.path.normpath(path.parent / os.path.relpath(text, place))
        return now if os.path.isabs(text) and os.path.exists(now) else text

    splits = [moved(one) for one in stored["other_splits"]]
    return _spec_of(stored | {"other_splits": splits}, path.parent, str(path))


def _spec_of(raw: Mapping[str, Any], folder: Path, where: str) -> ReleaseSpec:
    """Validate a specification as JSON holds it. Raises ConfigError."""
    plain = json.loads(json.dumps(raw, default=str))
    spec = read_section(ReleaseSpec, plain, folder, where, "docs/reference/releases.md")
    for name in spec.quotas:
        if name != TOTAL and name not in SUBTASKS:
            choice = f"choose from {TOTAL}, {', '.join(SUBTASKS)}"
            raise ConfigError(
                f"{where}: quotas: no subtask {quoted(name)}; {suggest(name, SUBTASKS)}{choice}"
            )
    known = find_licence(spec.licence)
    if known is None or known.id != spec.licence:
        example = known.id if known else "one such as CC-BY-4.0"
        raise ConfigError(
            f"{where}: licence {quoted(spec.licence)} is not an SPDX identifier; write {example}"
        )
    if not (any(spec.quota_of().values()) or spec.cases):
        raise ConfigError(
            f"{where}: the specification chooses no item; set `quotas`, `dev` or `cases`"
        )
    return spec

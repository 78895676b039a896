"""What the gates of a release know beside its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from h2htalk.curation.release.selection import History
from h2htalk.curation.release.settings import Acceptance

# (item, what was found there); the item is empty for the release as a whole.
Found = tuple[str, str]


@dataclass(frozen=True, slots=True)
class GateContext:
    """What gates know beside the content.

    Attributes:
        licence: of the release.
        quotas: subtask -> items of split `test`; also `dev`.
        acceptance: what experts must have said.
        surrogates: dialogue -> the invented values that anonymisation put into it.
        allow: names in texts that are no personal data.
        other_splits: with which no item may be a near-duplicate.
        history: which ids were in a split of earlier releases.
    """

    licence: str
    quotas: Mapping[str, int] = field(default_factory=dict)
    acceptance: Acceptance = field(default_factory=Acceptance)
    surrogates: Mapping[str, frozenset[str]] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    other_splits: tuple[str, ...] = ()
    history: History = field(default_factory=History)

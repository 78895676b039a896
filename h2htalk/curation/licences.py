"""Licences of data: what each allows, what a mixture of them allows, and which releases they may enter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.errors import ConfigError
from h2htalk.text.language_data import read_data

# The licence of a release that is not distributed: every source may enter it.
PRIVATE = "none"


@dataclass(frozen=True, slots=True)
class Licence:
    """What a licence, by its SPDX identifier, asks of those who distribute adapted data."""

    id: str
    attribution: bool = True  # the makers must be named
    commercial: bool = True  # commercial use is allowed
    adaptation: bool = True  # changed versions may be distributed at all
    share_alike: str = (
        ""  # the family of licences that adapted versions must stay in; empty for none
    )
    version: float = 0.0  # within its family; a later version may take over data of an earlier one


# By lower-case SPDX identifier, as SPDX compares them.
LICENCES: Mapping[str, Licence] = {
    name.lower(): Licence(name, **asks)
    for name, asks in read_data(Path(__file__).with_suffix(".toml")).items()
}


def find_licence(name: str) -> Licence | None:
    """The licence of an SPDX identifier, in any letter case; None for an unknown one."""
    return LICENCES.get(name.strip().lower())


def licence_id(name: str) -> str:
    """An SPDX identifier in SPDX's own letter case; an unknown one as it is."""
    return known.id if (known := find_licence(name)) is not None else name


def mixture(licences: Iterable[str]) -> str | None:
    """The most permissive licence for a mixture; None where no licence allows it; of no licences at all `CC0-1.0`.

    Sources: the terms of the licences, and Creative Commons' chart of licences for adapted material.
    """
    known = [find_licence(name) for name in sorted(set(licences))]
    mixed = [licence for licence in known if licence is not None and licence.adaptation]
    sharing = [licence for licence in mixed if licence.share_alike]
    commercial = all(licence.commercial for licence in mixed)
    if len(mixed) < len(known) or len({licence.share_alike for licence in sharing}) > 1:
        return None
    if sharing:
        target = max(sharing, key=lambda licence: (licence.version, licence.id))
        return target.id if commercial or not target.commercial else None
    if not commercial:
        return "CC-BY-NC-4.0"
    return "CC-BY-4.0" if any(licence.attribution for licence in mixed) else "CC0-1.0"


def refusal(licence: str, release: str) -> str | None:
    """Why data of a licence cannot enter a release of another; None where they can.

    Any licence can enter the release `none`, and an unknown one no other.
    """
    if release == PRIVATE:
        return None
    own = find_licence(licence)
    target = find_licence(release)
    if target is None:
        return f"{release} is not a known licence"
    if own is None:
        return f"{licence or 'an empty text'} is not a known licence"
    if not own.adaptation:
        return f"{own.id} forbids to distribute changed versions"
    if not own.commercial and target.commercial:
        return f"{own.id} forbids commercial use, which {target.id} allows"
    if own.share_alike and (own.share_alike != target.share_alike or own.version > target.version):
        return f"{own.id} requires adapted data to stay under it"
    if own.attribution and not target.attribution:
        return f"{own.id} requires to name its makers, which {target.id} does not"
    return None


def require_allowed(sources: Sequence[tuple[str, str]], release: str) -> None:
    """Check that every source, (name, licence), may enter a release of a licence, or `none`.

    Raises ConfigError where a source may not; names it, the reason, and a release that would allow all sources.
    """
    if release != PRIVATE and find_licence(release) is None:
        advice = "name the release's licence by its SPDX identifier, such as CC-BY-4.0"
        private = f"or write {PRIVATE!r} for a release that is not distributed"
        raise ConfigError(
            f"gather.licence: {release!r} is not a known licence; {advice}, {private}"
        )
    for name, licence in sources:
        if (reason := refusal(licence, release)) is not None:
            possible = mixture(licence for _, licence in sources)
            advice = (
                f"set gather.licence = {possible!r}, which allows all sources"
                if possible
                else "leave it out"
            )
            private = f"or set gather.licence = {PRIVATE!r} and do not distribute the release"
            raise ConfigError(
                f"source {name!r} cannot enter a release under {release}: {reason}; {advice}, {private}"
            )

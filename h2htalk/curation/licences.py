"""Licences of data: what each allows, what a mixture of them allows, and whether it may reach a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.errors import ConfigError

# A release that is not given on: everything may enter it.
PRIVATE = "none"


@dataclass(frozen=True, slots=True)
class Licence:
    """What a licence asks of those who give adapted data on.

    Attributes:
        id: the SPDX identifier.
        attribution: to name the makers.
        commercial: whether commercial use is allowed.
        adaptation: whether changed versions may be given on at all.
        share_alike: the family whose licences adapted versions must stay in; empty for none.
        version: within its family; a later one may take over an earlier one's data.
    """

    id: str
    attribution: bool = True
    commercial: bool = True
    adaptation: bool = True
    share_alike: str = ""
    version: float = 0.0


def _table() -> dict[str, Licence]:
    found = [
        Licence(name, attribution=False) for name in ("CC0-1.0", "PDDL-1.0", "Unlicense", "0BSD", "MIT-0")
    ]
    by = "MIT Apache-2.0 BSD-2-Clause BSD-3-Clause ISC ODC-By-1.0 CDLA-Permissive-1.0 CDLA-Permissive-2.0 C-UDA-1.0"
    found += [Licence(name) for name in by.split()]
    for version in ("1.0", "2.0", "2.5", "3.0", "4.0"):
        number = float(version)
        found += [
            Licence(f"CC-BY-{version}"),
            Licence(f"CC-BY-SA-{version}", share_alike=_family("CC-BY-SA", version), version=number),
            Licence(f"CC-BY-NC-{version}", commercial=False),
            Licence(
                f"CC-BY-NC-SA-{version}",
                commercial=False,
                share_alike=_family("CC-BY-NC-SA", version),
                version=number,
            ),
            Licence(f"CC-BY-ND-{version}", adaptation=False),
            Licence(f"CC-BY-NC-ND-{version}", commercial=False, adaptation=False),
        ]
    found += [
        Licence("ODbL-1.0", share_alike="ODbL", version=1.0),
        Licence("CDLA-Sharing-1.0", share_alike="CDLA-Sharing", version=1.0),
        Licence("GFDL-1.3-only", share_alike="GFDL", version=1.3),
        # What may be given on under any later version may become `only`, and never the other way round.
        Licence("GPL-3.0-or-later", share_alike="GPL", version=3.0),
        Licence("GPL-3.0-only", share_alike="GPL", version=3.1),
    ]
    return {licence.id.lower(): licence for licence in found}


def _family(name: str, version: str) -> str:
    """Creative Commons' share-alike licences take over what earlier ones hold, but the first: it names itself alone."""
    return f"{name}-{version}" if version == "1.0" else name


# By lower-case SPDX identifier: SPDX compares them so.
LICENCES: Mapping[str, Licence] = _table()


def find(name: str) -> Licence | None:
    """The licence of an SPDX identifier, in any letter case; None for one that is not known here."""
    return LICENCES.get(name.strip().lower())


@dataclass(frozen=True, slots=True)
class Mixture:
    """The licence that data of several licences can be given on under together; None, and why not."""

    licence: str | None
    reason: str = ""


def mixture(licences: Iterable[str]) -> Mixture:
    """The most permissive licence for a mixture. Of no licences at all: `CC0-1.0`.

    Sources: the licences' own terms, and Creative Commons' chart of what adapted material may be licensed under.
    """
    names = sorted(set(licences))
    if unknown := [name for name in names if find(name) is None]:
        return Mixture(None, f"{unknown[0]} is not a licence known here; name it by its SPDX identifier")
    known = [LICENCES[name.strip().lower()] for name in names]
    if closed := [licence.id for licence in known if not licence.adaptation]:
        return Mixture(None, f"{closed[0]} forbids giving changed versions on")
    sharing = [licence for licence in known if licence.share_alike]
    families = sorted({licence.share_alike for licence in sharing})
    if len(families) > 1:
        return Mixture(None, f"{' and '.join(families)} each ask for a licence of their own family")
    non_commercial = [licence.id for licence in known if not licence.commercial]
    if sharing:
        target = max(sharing, key=lambda licence: (licence.version, licence.id))
        if target.commercial and non_commercial:
            return Mixture(
                None, f"{target.id} must stay open to commercial use, and {non_commercial[0]} forbids it"
            )
        return Mixture(target.id)
    if non_commercial:
        return Mixture("CC-BY-NC-4.0")
    return Mixture("CC-BY-4.0" if any(licence.attribution for licence in known) else "CC0-1.0")


def refusal(licence: str, release: str) -> str | None:
    """Why data of a licence cannot enter a release of another; None where they can.

    Everything can enter the release `none`, which nobody is given. A licence that is not known here can enter no other.
    """
    if release == PRIVATE:
        return None
    own, target = find(licence), find(release)
    if target is None:
        return f"{release} is not a licence known here"
    if own is None:
        return f"{licence} is not a licence known here"
    if not own.adaptation:
        return f"{own.id} forbids giving changed versions on"
    if not own.commercial and target.commercial:
        return f"{own.id} forbids commercial use, which {target.id} allows"
    if own.share_alike and (own.share_alike != target.share_alike or own.version > target.version):
        return f"{own.id} asks that what is made of it stays under it"
    if own.attribution and not target.attribution:
        return f"{own.id} asks to name its makers, which {target.id} does not"
    return None


def require_allowed(sources: Sequence[tuple[str, str]], release: str) -> None:
    """See that every source may enter the release.

    Args:
        sources: (name, licence) of each.
        release: the release's licence, or `none`.

    Raises:
        ConfigError: one may not; names it, why, and which release its mixture with the others could have.
    """
    if release != PRIVATE and find(release) is None:
        raise ConfigError(
            f"gather.licence: {release!r} is not a licence known here; name a release's licence by its SPDX "
            f"identifier, such as CC-BY-4.0, or {PRIVATE!r} for one that is not given on"
        )
    for name, licence in sources:
        why = refusal(licence, release)
        if why is None:
            continue
        possible = mixture(licence for _, licence in sources).licence
        advice = (
            f"gather.licence = {possible!r} would allow all sources, or" if possible else "leave it out, or"
        )
        raise ConfigError(
            f"source {name!r} cannot enter a release under {release}: {why}; {advice} gather.licence = "
            f"{PRIVATE!r} keeps the release to yourself"
        )

"""What a build or a check of a release prints: counts, what gates found, what nobody has read, and the verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from h2htalk.curation.release import gates
from h2htalk.curation.release.build import Release
from h2htalk.curation.release.exposed import UNREAD_REASONS
from h2htalk.curation.release.gate_context import Finding
from h2htalk.curation.release.read_gates import Untested
from h2htalk.curation.release.selection import REVIEWED
from h2htalk.curation.stage_folder import count_values
from h2htalk.data.readers.certificates import CHECK_AGAIN, NO_CERTIFICATE
from h2htalk.data.subtasks import in_table_order
from h2htalk.errors import counted, listed
from h2htalk.text.escaping import printable

HOW_TO_READ = (
    "  to have items and cases read: put them to a guard (`h2htalk release read SPEC --guard MODEL`) and build again, "
    "or put items to people: a round asks about minors, explicit content and crises where its `ask` names them"
)
HOW_TO_ANNOUNCE = (
    "  to tag an item as about a crisis, write its id and its risk under [crisis_risk] of {spec}: "
    '"{item}" = "elevated" (or "high"; "none" where you have read it and nobody is in danger)'
)
HOW_TO_CHECK = (
    "  a guard or a reviewer counts once `h2htalk curate check-guard MODEL` gave it a certificate"
)
HOW_TO_MEASURE = (
    "  to have a model quote what gives users away (another one, where it misquoted): "
    "`h2htalk release risk SPEC --model MODEL`, and build again"
)
CRISES = "crisis_care"
OF_A_SPLIT = (
    "  a split keeps no record of who read it; a release does, which `h2htalk release "
    "build` makes of a workspace"
)
HOW_TO_ALLOW = (
    "  to publish what nobody has read all the same: build with --allow GATE:unread=REASON, or with "
    "GATE:unread:N=REASON for at most N items"
)


def release_lines(release: Release, most: int | None = 20, spec: str = "SPEC") -> Iterator[str]:
    """Say what was accepted, refused and chosen, and what the gates found: of each at `most` so many, None: all.

    `spec`: how messages name the specification of the release.
    """
    accepted = release.accepted
    content = release.content
    rows = {f"config {config}": counts for config, counts in content.configs().items()}
    yield from release.notes
    if accepted is not None:
        yield f"accepted: {len(accepted.items):,} of {counted(len(accepted.items) + len(accepted.refused), 'item')}"
        for reason, count in count_values(accepted.refused.values()).items():
            yield f"  refused: {reason}: {count:,}"
        announced = {item.id for item in accepted.items}.intersection(accepted.announced)
        if announced:
            items = counted(len(announced), "item is", "items are")
            yield f"  {items} tagged as about a crisis (tags.risk elevated), as people answered yes"
        chosen = {
            split: Counter(item.scenario.subtask for item in own)
            for split, own in content.splits.items()
        }
        names = in_table_order(chain(*chosen.values()))
        rows = {name: {split: own[name] for split, own in chosen.items()} for name in names} | rows
    for name, counts in rows.items():
        yield f"{name}: {', '.join(f'{split} {count:,}' for split, count in counts.items())}"
    for gate in (*gates.GATES.values(), gates.OF_RISK):
        yield from _findings(f"gate {gate.name}: {gate.stops}", gate.name, release.findings, most)
    cleared = [item.id for item in content.items() if item.scenario.metadata.get(REVIEWED) is True]
    if cleared:
        yield f"gate {CRISES} passes over what its author read and found without danger: {', '.join(cleared)}"
    of_crises = [finding.item for finding in release.findings if finding.gate == CRISES]
    if of_crises:
        yield HOW_TO_ANNOUNCE.format(spec=spec, item=of_crises[0])
    for gate in gates.HINTS.values():
        yield from _findings(
            f"hint {gate.name}: words point at {gate.stops}", gate.name, release.hints, most
        )
    for gate in (gates.USER_HATE, gates.KNOWN_USERS):
        yield from _findings(f"report {gate.name}: {gate.stops}", gate.name, release.reported, most)
    is_split = release.path is None and release.accepted is None
    # A build is told how to hold its permission in scripts; a release holds it already.
    unlimited = {one.gate for one in release.allowed if one.item == gates.UNREAD}
    yield from untested_lines(release.untested, is_split, unlimited)
    yield from release.unchecked


def _findings(
    title: str, gate: str, findings: Sequence[Finding], most: int | None
) -> Iterator[str]:
    """The findings of a gate under their title; nothing without one."""
    found = [one for one in findings if one.gate == gate]
    if not found:
        return
    yield f"{title}: {counted(len(found), 'finding')}"
    for one in found[:most]:
        line = f"{one.item}: {one.detail}" if one.item else one.detail
        yield f"  {printable(line)}"  # votes, and what readers found, may be anybody's words
    if most is not None and len(found) > most:
        yield f"  and {len(found) - most:,} more (--all lists them)"


def untested_lines(
    untested: Sequence[Untested], is_split: bool = False, unlimited: Collection[str] = ()
) -> Iterator[str]:
    """Say for which gates how many items are unread, why, and how to have them read; alike gates together.

    `is_split`: whether it is of a split, which nobody can be recorded to have read; `unlimited`: the gates for which
    the owner just allowed whatever is unread.
    """
    alike: dict[tuple[object, ...], list[Untested]] = defaultdict(list)
    for one in untested:
        key = (
            one.items,
            tuple(one.reasons.items()),
            one.allowed,
            one.at_most,
            one.gate in unlimited,
        )
        alike[key].append(one)
    for group in alike.values():
        first = group[0]
        names = ", ".join(one.gate for one in group)
        state = "unread, as the owner allows" if first.allowed else "not tested"
        limit = f"; the owner allows {first.at_most:,}" if first.at_most is not None else ""
        yield f"{'gate' if len(group) == 1 else 'gates'} {names}: {state}: {first.count()} unread{limit}"
        if first.allowed:
            yield f"  the owner's reason: {printable(first.allowed)}"
            if first.gate in unlimited:
                form = f"--allow {first.gate if len(group) == 1 else 'GATE'}:unread:{len(first.items)}=REASON"
                yield f"  allowed for {first.count()}; to hold it at that in scripts write {form}"
        for reason, count in first.reasons.items():
            yield f"  {printable(reason)}: {count:,}"
        yield f"  for example {printable(listed(first.items, 3))}"
    lacking = [one for one in untested if not one.allowed]
    if lacking and is_split:
        yield OF_A_SPLIT
    elif lacking:
        reasons = {reason for one in lacking for reason in one.reasons}
        unchecked = {reason for reason in reasons if reason.endswith((NO_CERTIFICATE, CHECK_AGAIN))}
        # The check comes first: it costs less than a reading, and what was read counts without another one.
        if unchecked:
            yield HOW_TO_CHECK
        of_risk = reasons.intersection(UNREAD_REASONS.values())
        if reasons - unchecked - of_risk:
            yield HOW_TO_READ
        if of_risk:
            yield HOW_TO_MEASURE
        yield HOW_TO_ALLOW


def verdict(release: Release) -> str:
    """What the gates say of a release in which none of them found anything that is not allowed."""
    lacking = [one.gate for one in release.untested if not one.allowed]
    if lacking:
        return f"no gate found anything, and of {len(release.content.records()):,} items some are unread: not tested"
    if release.unchecked:
        return "no gate found anything in what could be checked"
    if release.untested:
        return "no gate found anything; what nobody has read is published as its owner allows"
    if not all(map(gates.is_of_unread, release.allowed)):
        return "no other gate stopped"
    return "every gate passed"


def allowed_lines(release: Release) -> Iterator[str]:
    """What a build publishes by its owner's word."""
    unread = {one.gate for one in release.untested if one.allowed}
    for one in release.allowed:
        if not gates.is_of_unread(one) or one.gate in unread:
            yield printable(f"allowed by the owner: {one}")

"""Status of a round: counts of items, assignments and annotators, and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from h2htalk.data.files import read_json_object
from h2htalk.data.languages import Language
from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.rounds.aggregation.agreement import NO_PAIRS, NO_VARIETY
from h2htalk.rounds.aggregation.annotator_statistics import annotator_warnings, gold_shares
from h2htalk.rounds.aggregation.decisions import RULES, Decision
from h2htalk.rounds.aggregation.shared_answers import SharedAnswers, shared_answers
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    pending_annotations,
)
from h2htalk.rounds.platforms import Collected, Message
from h2htalk.rounds.questions import voted
from h2htalk.rounds.readers.planted import describe_readers
from h2htalk.rounds.round_folder import RoundFolder, RoundState, read_state
from h2htalk.text.tables import Table

# Short forms of the reasons why alpha is undefined; agreement.json has the long ones.
_SHORT_REASONS = {NO_PAIRS: "no two votes", NO_VARIETY: "one label only"}
# Messages of one kind that are printed in full, and places of the others that are listed.
MAX_FULL, MAX_PLACES = 3, 5
# Heading of the column of items that lack answers which nobody is left to give.
_SHORT = "below overlap"
# (item, annotator)
Pairs = Collection[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """Progress on the items of one language, by one annotator or by all.

    Attributes:
        annotator: name; `NAME (left)` of one who left the round; empty for all annotators.
        items: items assigned to the annotator, or all items. None if a server hands out the items.
        done: items that the annotator has completed; of all annotators, that have all the answers they need.
        open: items that somebody can still complete, and that the annotator has not skipped. None where `items` is.
        started: assignments with a draft or a partly filled row.
        short: of all annotators, items that lack answers and that nobody is left to give, as `Status.short`.
    """

    annotator: str
    language: Language
    items: int | None
    done: int
    open: int | None
    started: int
    skipped: int
    short: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a round. An assignment is one item given to one annotator, completed when they have answered it.

    Attributes:
        state: `open`, `closed`, `partly opened`, or in a list `cannot be read`.
        items_done: items that have all the answers that they need.
        assignments: number of completed and missing assignments.
        new: annotations that this call has collected.
        progress: progress on each language, then of each annotator.
        idle: active annotators without items.
        by_item: item -> completed assignments.
        missing: item -> missing assignments, as far as eligible annotators are left; of a tie, those that were
            published and are not completed.
        exhausted: item -> further annotations that it needs and nobody is left to give: skipped, left, not eligible.
        short: items that lack answers, or have none, and are not missing, as nobody is left to give them: neither done
            nor open.
        unassigned: items that need more annotators than have them: skipped, or not clear in an adaptive round.
        ties: tied items that could get one more annotator, which was not requested yet.
        mistakes: answers that cannot be counted.
        notes: messages for the manager.
    """

    name: str
    kind: str = ""
    where: str = ""
    state: str = "cannot be read"
    items: int = 0
    items_done: int = 0
    assignments: int = 0
    completed: int = 0
    skipped: int = 0
    new: int = 0
    progress: tuple[ProgressRow, ...] = ()
    idle: int = 0
    by_item: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    exhausted: Mapping[str, int] = field(default_factory=dict)
    short: tuple[str, ...] = ()
    unassigned: int = 0
    ties: int = 0
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unanswered(self) -> int:
        """Number of items that nobody has answered, and nobody is left to answer."""
        return sum(not self.by_item[item] for item in self.short)


def status_of(
    state: RoundState, collected: Collected, new: int = 0, *, quality: bool = False
) -> Status:
    """Return the status of a round after `collected`, of which `new` annotations were stored now.

    With `quality`, notes name removed annotators and warn of unusual answers.
    """
    spec = state.spec
    items = state.judged_items
    annotators = state.annotators
    completed = {item.id: state.completed[item.id] for item in items}
    skipped = skips(state.annotations)
    needed = state.requests(annotators)
    with_ties = state.requests(annotators, ties=True)
    open_items = [item for item in items if item.id in with_ties]
    pending = pending_annotations(open_items, state.sets, annotators, state.annotations, completed)
    left = {name: one.pending + one.available for name, one in pending.items()}
    exhausted = {name: count - left[name] for name, count in needed.items() if count > left[name]}
    needed = {name: min(count, left[name]) for name, count in needed.items()}
    # A tie needs the annotators that have it; the manager has not yet requested others.
    missing = {
        name: count
        for name, most in with_ties.items()
        if (count := max(needed.get(name, 0), min(most, pending[name].pending)))
    }
    other_ties = {name: count for name, count in with_ties.items() if name not in missing}
    requests, _ = annotations_to_request(other_ties, pending)
    partly = state.phase == "partly opened"
    # A pilot needs only those who are left, so an item that lost all its readers lacks nobody there.
    short = [
        one.id
        for one in items
        if one.id not in missing and (one.id in exhausted or not completed[one.id])
    ]
    progress, idle = (
        ((), 0) if partly else _progress(state, missing, short, skipped, collected.started)
    )
    total = sum(map(len, completed.values()))
    notes = [*collected.notes, *([state.describe_opening()] if partly else [])]
    if quality:
        warnings = annotator_warnings(items, state.questions, state.judged)
        notes += state.describe_removed()
        notes += [
            f"look at the answers of {v.name}: {one}"
            for v in annotators
            for one in warnings.get(v.id, ())
        ]
        notes += describe_shared(state, shared_answers_of(state))
        notes += _describe_gold(state)
        notes += describe_readers(state.items, state.annotations.values(), state.questions)
    return Status(
        name=state.name,
        kind=spec.kind,
        where=spec.where,
        state=state.phase,
        items=len(items),
        items_done=len(items) - len(missing) - len(short),
        assignments=total + sum(missing.values()),
        completed=total,
        skipped=len(skipped),
        new=new,
        progress=progress,
        idle=idle,
        by_item={item: len(who) for item, who in sorted(completed.items())},
        missing=missing,
        exhausted=exhausted,
        short=tuple(short),
        unassigned=sum(count > pending[name].pending for name, count in missing.items()),
        ties=sum(len(completed[name]) <= spec.annotators_per_item for name in requests),
        mistakes=collected.mistakes,
        notes=tuple(notes),
    )


def shared_answers_of(state: RoundState) -> list[SharedAnswers]:
    """Return the pairs of a round's annotators who share unusual answers; of a removed one nothing is compared."""
    annotators = [one.id for one in state.annotators if one.id not in state.removed]
    return shared_answers(voted(state.questions), state.judged, annotators)


def describe_shared(state: RoundState, shared: Iterable[SharedAnswers]) -> list[str]:
    """Return a message on each pair of annotators who share unusual answers, by their names."""
    names = {one.id: one.name for one in state.annotators}
    messages = []
    for pair in shared:
        first, second = sorted(names[one] for one in pair.annotators)
        messages.append(
            f"look at the answers of {first} and {second}: {pair.describe(first, second)}"
        )
    return messages


def _describe_gold(state: RoundState) -> list[str]:
    """Return a message on right and wrong gold answers, in all and of each annotator; none without gold items."""
    if not any(item.gold for item in state.judged_items):
        return []
    shares = gold_shares(state.judged_items, state.questions, state.judged)
    if not shares:
        return ["gold items: no answer yet"]
    right = sum(one.right for one in shares.values())
    total = sum(one.of for one in shares.values())
    each = [
        f"{one.name} {shares[one.id].right} of {shares[one.id].of}"
        for one in state.annotators
        if one.id in shares
    ]
    return [
        f"gold items: {right:,} of {counted(total, 'answer')} right, {total - right:,} wrong ({', '.join(each)})"
    ]


def _progress(
    state: RoundState,
    missing: Collection[str],
    short: Collection[str],
    skipped: Pairs,
    started: Pairs,
) -> tuple[tuple[ProgressRow, ...], int]:
    """Return the progress on each language and of each annotator, and the number of active annotators without items."""
    language = {item.id: item.language for item in state.items}
    assigned = {(one.item, one.annotator) for one_set in state.sets for one in one_set.assignments}
    done = {(item, annotator) for item, who in state.completed.items() for annotator in who}
    given, completed, left, begun, passed = (
        Counter((annotator, language[item]) for item, annotator in pairs)
        for pairs in (assigned, done, assigned - done - set(skipped), started, skipped)
    )
    total = Counter(item.language for item in state.judged_items)
    missing_of = Counter(language[item] for item in missing)
    short_of = Counter(language[item] for item in short)
    rows = []
    for one in sorted(total):
        starts, skips_ = (
            sum(n for (_, of), n in counts.items() if of == one) for counts in (begun, passed)
        )
        row = ProgressRow(
            annotator="",
            language=one,
            items=total[one],
            done=total[one] - missing_of[one] - short_of[one],
            open=missing_of[one],
            started=starts,
            skipped=skips_,
            short=short_of[one],
        )
        rows.append(row)
    idle = 0
    for annotator in state.annotators:
        before = len(rows)
        has_counts = annotator.active and bool(assigned)
        # No name contains a space, so nobody else is called `NAME (left)`.
        name = annotator.name if annotator.active else f"{annotator.name} (left)"
        for one in sorted(total):
            key = annotator.id, one
            expected = given[key] if assigned else one in annotator.languages
            if completed[key] or passed[key] or (annotator.active and expected):
                numbers = (given[key], left[key]) if has_counts else (None, None)
                rows.append(
                    ProgressRow(
                        name, one, numbers[0], completed[key], numbers[1], begun[key], passed[key]
                    )
                )
        idle += annotator.active and len(rows) == before
    return tuple(rows), idle


def require_complete(path: Path, status: Status) -> None:
    """Raise RoundError if a round has mistakes, or lacks assignments that somebody could complete."""
    if status.mistakes:
        raise RoundError(
            f"{status.name}: {counted(len(status.mistakes), 'mistake')}, the first: {status.mistakes[0]}; have them "
            "corrected (`h2htalk round status` lists them), or close anyway with --force"
        )
    if status.missing:
        raise RoundError(
            f"{status.name}: {counted(sum(status.missing.values()), 'assignment is', 'assignments are')} missing for "
            f"{len(status.missing):,} of {counted(status.items, 'item')}; wait; hand out what annotators who left "
            f"have not answered with `h2htalk round reopen {path} --without NAME`; or close with --force"
        )


def list_rounds(path: Path) -> Iterator[Status]:
    """Yield the status of every round in a folder and its subfolders, as of the last collection.

    Their names are the paths of their folders. A round that cannot be read is yielded with the error among its notes.
    """
    if not path.is_dir():
        raise RoundError(f"{path}: folder not found")
    for manifest in sorted(path.rglob("round.json")):
        folder = RoundFolder(manifest.parent)
        try:
            if "spec" in folder.manifest():
                yield replace(status_of(read_state(folder), Collected()), name=str(manifest.parent))
        except H2HTalkError as error:
            yield Status(str(manifest.parent), notes=(str(error),))


# --- Lines and tables for the terminal -------------------------------------------------------------------------------


def status_lines(status: Status) -> Iterator[str]:
    """Yield a summary of a round's status."""
    yield f"{status.name}: {status.kind} round on {status.where}, {status.state}"
    yield f"items: {status.items_done:,} of {status.items:,} done"
    new = f"; {counted(status.new, 'new annotation')} collected" if status.new else ""
    yield f"assignments: {status.completed:,} of {status.assignments:,} completed, {status.skipped:,} skipped{new}"
    if status.unassigned:
        items = counted(status.unassigned, "item needs", "items need")
        yield f"{items} further annotators (skipped, or not clear yet): run `h2htalk round reopen`"
    if status.exhausted:
        items = counted(len(status.exhausted), "item")
        yield f"{items} cannot reach the overlap: no further eligible annotator is left"
    if status.unanswered:
        items = counted(status.unanswered, "item has", "items have")
        yield f"{items} no complete answer, and no eligible annotator is left to give one"


def item_lines(status: Status) -> Iterator[str]:
    """Yield a line on each item that lacks answers: how many are missing, and how many nobody is left to give."""
    for item, completed in status.by_item.items():
        parts = [f"{completed:,} completed"]
        if item in status.missing:
            parts.append(f"{status.missing[item]:,} missing")
        if item in status.exhausted:
            parts.append(f"{status.exhausted[item]:,} that nobody is left to give")
        elif item in status.short:
            parts.append("nobody is left to answer it")
        if len(parts) > 1:
            yield f"{item}: {', '.join(parts)}"


def grouped(messages: Iterable[str]) -> Iterator[str]:
    """Yield messages in order; of many of one kind the first, with the places of some others and their number."""
    groups: dict[str, list[str]] = {}
    for message in messages:
        groups.setdefault(message.kind if isinstance(message, Message) else message, []).append(
            message
        )
    for group in groups.values():
        if len(group) <= MAX_FULL:
            yield from group
            continue
        places = [message.place for message in group if isinstance(message, Message)][1:]
        more = f"; and {len(places) - MAX_PLACES:,} more" if len(places) > MAX_PLACES else ""
        yield group[0]
        yield f"  the same in {len(places):,} more places: {'; '.join(places[:MAX_PLACES])}{more}"


def progress_table(status: Status) -> Table:
    """Return a table of items that are done, open, short, started and skipped, by language and by annotator.

    Columns of what no item is (short, started) are left out.
    """
    columns = {"items": "items", "done": "done", "open": "open"}
    if status.short:
        columns[_SHORT] = "short"
    if any(row.started for row in status.progress):
        columns["started"] = "started"
    columns["skipped"] = "skipped"
    rows = []
    for row in status.progress:
        numbers = [getattr(row, key) for key in columns.values()]
        rows.append((row.annotator or "all", row.language, *numbers))
    idle = (f"{counted(status.idle, 'annotator')} without items",) if status.idle else ()
    return Table("", ("annotator", "language", *columns), rows, idle)


def decisions_table(path: Path, decisions: Sequence[Decision]) -> Table:
    """Return a table of the number of decisions by question and rule, with Krippendorff's alpha."""
    counts: dict[str, Counter[str]] = {}
    for one in decisions:
        counts.setdefault(one.question, Counter())[one.rule] += 1
    rules = [rule for rule in RULES if any(count[rule] for count in counts.values())]
    agreement = read_json_object(path / "agreement.json")
    rows = []
    for name, count in counts.items():
        found = agreement.get(name, {})
        alpha, (low, high) = found.get("alpha"), found.get("interval") or ("", "")
        shown = _SHORT_REASONS.get(found.get("reason"), "") if alpha is None else f"{alpha:.3f}"
        rows.append(
            (
                name,
                *(count[rule] for rule in rules),
                shown,
                f"{low:.3f} to {high:.3f}" if low != "" else "",
            )
        )
    return Table("", ("question", *rules, "alpha", "95 %"), rows)


def rounds_table(rounds: Sequence[Status]) -> Table:
    """Return a table of rounds."""
    has_short = any(one.short for one in rounds)
    columns = ["round", "kind", "where", "state", "items", "done", "assignments"]
    if has_short:
        columns.insert(-1, _SHORT)
    rows = []
    for one in rounds:
        row: list[str | int] = [one.name, one.kind, one.where, one.state, one.items, one.items_done]
        if has_short:
            row.append(len(one.short))
        row.append(f"{one.completed:,} of {one.assignments:,}")
        rows.append(row)
    return Table("", columns, rows)

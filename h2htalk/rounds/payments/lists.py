"""What a round pays its annotators: an append-only file of payment lists, and CSV files for whoever sends the money.

A closing stores the list of what is to be paid now before it writes the list's file. What was listed once is not listed
again: not by the same closing after it was killed, and not by a later one, which lists the difference. So everybody is
paid what the round owes them if each list is sent once. `amounts` says how each amount is computed.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path

from h2htalk.data.files import AppendLog, reading, remove_file, write_text
from h2htalk.errors import DataError, counted
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.erased_annotators import ErasedAnnotator
from h2htalk.rounds.payments.amounts import (
    UNPAID,
    ZERO,
    Amounts,
    amount_owed,
    different_currencies,
    is_rewarded,
    round_amount,
)
from h2htalk.rounds.payments.submissions import read_submissions, submission_of
from h2htalk.rounds.round_folder import (
    BONUS,
    DONE,
    PAYMENTS,
    RoundFolder,
    RoundState,
    archived_bonus,
    now,
    read_record_lines,
)
from h2htalk.rounds.settings import RoundSpec
from h2htalk.text.escaping import csv_text

# The number of lists in the event of a closing.
LISTS_MADE = "payment_lists"
# The number of submissions that were listed for approval, in the event of a closing.
LISTED_FOR_APPROVAL = "listed_for_approval"


@dataclass(frozen=True, slots=True)
class Payment:
    """What one list pays an annotator, a salted hash: decimal numbers as text, in the currency of the list.

    `owed` is what the round owes them in all when the list is made, the study's reward included.
    """

    annotator: str
    participant_id: str
    owed: str
    bonus: str


@dataclass(frozen=True, slots=True)
class PaymentList:
    """What one closing listed; lists are numbered from 1.

    `opening` is the number of the round's opening that was closed. `when` is empty for what an earlier version listed.
    """

    number: int
    opening: int
    when: str
    currency: str
    reward: str
    payments: tuple[Payment, ...]

    @property
    def lines(self) -> list[Payment]:
        """The payments that the file of the list has; erased annotators have no id any more."""
        return [payment for payment in self.payments if payment.participant_id]


@dataclass(frozen=True, slots=True)
class Pay:
    """What an annotator has done, and the amounts of it.

    `status` is what Prolific calls the submission, `code` the completion code that was entered.
    """

    annotator: Annotator
    completed: int
    skipped: int
    minutes: float
    amounts: Amounts
    status: str = ""
    code: str = ""

    @property
    def is_participant(self) -> bool:
        return self.annotator.is_participant


def write_payments(state: RoundState) -> list[str]:
    """Write `payment.csv`, and list the bonuses that are to be paid now; return messages for the manager.

    Skipped items are paid, too, and so are those of removed annotators and those that were erased.
    """
    folder = state.folder
    lists = read_payment_lists(folder)
    pays = _pays(state, lists)
    due = [one for one in pays if one.annotator.participant_id and one.amounts.due]
    if due:
        lists.append(_new_list(state, lists, due))
        stored = [*read_stored_lists(folder)]
        with AppendLog(folder.path / PAYMENTS) as log:
            log.append(*(asdict(one) for one in lists[len(stored) :]))
        folder.protect()
    current = _write_files(state, lists)
    _write_pay(state, pays, lists, current)
    return _messages(state, pays, lists, current)


def describe_replaced_ids(
    folder: RoundFolder, before: Iterable[Annotator], after: Iterable[Annotator]
) -> list[str]:
    """Return a message for each annotator who now has another participant id, with what was listed for the earlier one.

    Raise DataError.
    """
    ids = {annotator.id: annotator.participant_id for annotator in after}
    listed = _listed(read_payment_lists(folder))
    currency = folder.spec().currency
    messages: list[str] = []
    for annotator in before:
        new = ids.get(annotator.id, "")
        if annotator.participant_id and new and new != annotator.participant_id:
            amount = f"{listed.get(annotator.id, ZERO)} {currency}".rstrip()
            messages.append(
                f"{annotator.name}: the participant id {annotator.participant_id} was replaced by {new}; {amount} was "
                "listed before and counts as paid"
            )
    return messages


def read_stored_lists(folder: RoundFolder) -> list[PaymentList]:
    """Return the lists that are stored. Raise DataError."""
    path = folder.path / PAYMENTS
    return (
        [one for _, one in read_record_lines(path, PaymentList, torn_tail=True)]
        if path.exists()
        else []
    )


def read_payment_lists(folder: RoundFolder) -> list[PaymentList]:
    """Return all lists, in order. Raise DataError, also if lists are missing that a closing has made.

    An earlier version stored none, and each of its files was about the whole pay: the highest amounts of these files
    count as listed.
    """
    stored = read_stored_lists(folder)
    made = max((int(event.get(LISTS_MADE, 0)) for event in folder.events()), default=0)
    if len(stored) < made:
        problem = f"{counted(made, 'list')} of payments were made, and {len(stored)} are stored"
        raise DataError(
            f"{folder.path / PAYMENTS}: {problem}; restore the file, or somebody may be paid twice"
        )
    if stored:
        return stored
    amounts: dict[str, Decimal] = {}
    for path in sorted(folder.private.glob(f"{Path(BONUS).stem}*.csv")):
        for participant, amount in _read_bonus(path):
            amounts[participant] = max(amount, amounts.get(participant, ZERO))
    by_participant = {
        one.participant_id: one for one in folder.listed_annotators() if one.participant_id
    }
    payments = [
        Payment(
            annotator=by_participant[participant].id,
            participant_id=participant,
            owed=str(one),
            bonus=str(one),
        )
        for participant, one in amounts.items()
        if participant in by_participant
    ]
    if not payments:
        return []
    opening = _opening(folder) if (folder.path / BONUS).exists() else 0
    first = PaymentList(
        number=1, opening=opening, when="", currency="", reward="0.00", payments=tuple(payments)
    )
    return [first]


def _read_bonus(path: Path) -> list[tuple[str, Decimal]]:
    with reading(path):
        lines = [*csv.reader(path.read_text(encoding="utf-8").splitlines())]
    try:
        return [(participant, Decimal(amount)) for participant, amount in lines]
    except (ValueError, ArithmeticError) as error:
        problem = "a line `participant_id,amount` is damaged; restore the file, since it says what was paid before"
        raise DataError(f"{path}: {problem}") from error


def _opening(folder: RoundFolder) -> int:
    """Return the number of the round's opening: 1 before it was reopened."""
    return 1 + len([event for event in folder.events() if event["event"] == "reopened"])


def _pays(state: RoundState, lists: Sequence[PaymentList]) -> list[Pay]:
    """Return the pay of all annotators that the round ever had. Raise DataError for amounts of two currencies."""
    _require_one_currency(state, lists)
    completed = Counter[str]()
    for annotators in completed_items(state.items, state.questions, state.stored).values():
        completed.update(annotators)
    skipped = Counter(annotator for _, annotator in skips(state.stored))
    for item in state.folder.erased_items():
        completed.update(item.completed)
        skipped.update(item.skipped)
    listed = _listed(lists)
    spec = state.spec
    submissions = read_submissions(state.folder)
    has_earlier_rule = _was_closed_by_earlier_version(state)
    pays: list[Pay] = []
    for annotator in state.annotators:
        done = completed[annotator.id] + skipped[annotator.id]
        submission = submission_of(submissions, annotator)
        # An earlier version took the reward off for everybody who did anything; its lists may be sent.
        was_taken_off = has_earlier_rule and bool(done and annotator.participant_id)
        is_paid = is_rewarded(submission.status, submission.listed or was_taken_off)
        amounts = Amounts(
            owed=amount_owed(done, spec.minutes, spec.hourly),
            reward=round_amount(spec.reward) if is_paid else ZERO,
            listed=listed.get(annotator.id, ZERO),
        )
        pay = Pay(
            annotator=annotator,
            completed=completed[annotator.id],
            skipped=skipped[annotator.id],
            minutes=done * spec.minutes,
            amounts=amounts,
            status=submission.status,
            code=submission.code or annotator.completion_code,
        )
        pays.append(pay)
    return [
        *pays,
        *(_pay_of_erased(spec, gone, listed) for gone in state.folder.erased_annotators()),
    ]


def _require_one_currency(state: RoundState, lists: Iterable[PaymentList]) -> None:
    currencies = different_currencies([state.spec.currency, *(one.currency for one in lists)])
    if currencies:
        raise DataError(
            f"{state.folder.path / PAYMENTS}: the lists of payments and the settings of the round are in "
            f"{' and '.join(currencies)}, which cannot be subtracted from each other; restore `currency` in "
            f"{state.folder.path / 'round.json'}, or open another round for payments in another currency"
        )


def _was_closed_by_earlier_version(state: RoundState) -> bool:
    """Return whether a version closed the round that did not store whom it had listed for approval."""
    return any(
        event["event"] == "closed" and LISTED_FOR_APPROVAL not in event for event in state.events
    )


def _pay_of_erased(spec: RoundSpec, gone: ErasedAnnotator, listed: Mapping[str, Decimal]) -> Pay:
    """Return the pay of somebody who was erased, under a code: as it was when they were erased."""
    done = gone.completed + gone.skipped
    owed = amount_owed(done, spec.minutes, spec.hourly)
    before = listed.get(gone.code, ZERO)
    reward = round_amount(gone.reward or 0)
    if not gone.reward and before:
        # An earlier version did not store the reward: its last list held what was owed without it.
        reward = min(round_amount(spec.reward), owed - before)
    amounts = Amounts(owed=owed, reward=reward, listed=before)
    return Pay(
        annotator=Annotator(id=gone.code, name=gone.code, languages=(), active=False),
        completed=gone.completed,
        skipped=gone.skipped,
        minutes=done * spec.minutes,
        amounts=amounts,
    )


def pay_of(state: RoundState, annotator: str) -> Pay:
    """Return the pay of an annotator (id) as of what is stored. Raise DataError."""
    return next(
        one
        for one in _pays(state, read_payment_lists(state.folder))
        if one.annotator.id == annotator
    )


def _listed(lists: Iterable[PaymentList]) -> Mapping[str, Decimal]:
    """Return annotator -> what all lists pay them."""
    sums: dict[str, Decimal] = {}
    for one in lists:
        for payment in one.payments:
            sums[payment.annotator] = sums.get(payment.annotator, ZERO) + Decimal(payment.bonus)
    return sums


def _new_list(state: RoundState, lists: Sequence[PaymentList], due: Iterable[Pay]) -> PaymentList:
    payments = tuple(
        Payment(
            annotator=one.annotator.id,
            participant_id=one.annotator.participant_id,
            owed=str(one.amounts.owed),
            bonus=str(one.amounts.due),
        )
        for one in due
    )
    return PaymentList(
        number=len(lists) + 1,
        opening=_opening(state.folder),
        when=now(),
        currency=state.spec.currency,
        reward=str(round_amount(state.spec.reward)),
        payments=payments,
    )


def _write_files(state: RoundState, lists: Sequence[PaymentList]) -> PaymentList | None:
    """Write the file of the list of this closing, and missing ones of earlier lists; return the list of this closing.

    Files of an earlier version stay as they are. The last list is of this closing if the round was not reopened since.
    """
    folder = state.folder
    current = lists[-1] if lists and lists[-1].opening == _opening(folder) else None
    for one in lists:
        if (
            one is not current
            and one.when
            and not (folder.path / archived_bonus(one.number)).exists()
        ):
            write_text(folder.path / archived_bonus(one.number), _bonus_lines(one))
    if current is None or not current.lines:
        remove_file(folder.path / BONUS)
    elif current.when:
        write_text(folder.path / BONUS, _bonus_lines(current))
    folder.protect()
    return current


def _bonus_lines(one: PaymentList) -> str:
    """Return the lines that Prolific's bulk bonus payment takes."""
    return "".join(f"{payment.participant_id},{payment.bonus}\n" for payment in one.lines)


def _write_pay(
    state: RoundState,
    pays: Sequence[Pay],
    lists: Sequence[PaymentList],
    current: PaymentList | None,
) -> None:
    """Write a CSV of all annotators by name: what they did, and what it pays."""
    headings = ["annotator", "items completed", "items skipped", "minutes"]
    rows: list[list[object]] = [
        [one.annotator.name, one.completed, one.skipped, one.minutes] for one in pays
    ]
    if any(one.is_participant for one in pays):
        headings += ["participant id", "completion code"]
        for row, pay in zip(rows, pays, strict=True):
            row += [pay.annotator.participant_id, pay.code]
    if any(one.status for one in pays):
        headings.append("submission")
        for row, pay in zip(rows, pays, strict=True):
            row.append(pay.status)
    if state.spec.hourly:
        headings += ["owed", "reward", "listed earlier", "listed now", "left to pay"]
        earlier = _listed(one for one in lists if one is not current)
        now_listed = _listed([current] if current else [])
        for row, pay in zip(rows, pays, strict=True):
            before = earlier.get(pay.annotator.id, ZERO)
            new = now_listed.get(pay.annotator.id, ZERO)
            amounts = replace(pay.amounts, listed=before + new)
            row += [
                str(amount) for amount in (amounts.owed, amounts.reward, before, new, amounts.due)
            ]
    state.folder.write_private("payment.csv", csv_text(headings, rows))


# --- Messages ---------------------------------------------------------------------------------------------------------


def _messages(
    state: RoundState,
    pays: Sequence[Pay],
    lists: Sequence[PaymentList],
    current: PaymentList | None,
) -> list[str]:
    """Return what is to be paid now, and why others get nothing more, or more than is owed."""
    if not state.spec.hourly:
        return []
    paid = [one for one in pays if one.is_participant and one.amounts.owed]
    messages: list[str] = []
    if current is not None:
        messages += _describe_list(state, lists, current)
    elif paid:
        messages.append(f"no bonus is to be paid now, so {BONUS} was not written")
    messages += _describe_rewards(state, paid)
    messages += _describe_others(state, pays)
    satisfied = [
        one
        for one in paid
        if one.amounts.listed and not one.amounts.due and one.amounts.reward < one.amounts.owed
    ]
    if lists and current is None and satisfied:
        people = counted(len(satisfied), "participant")
        messages.append(
            f"no further bonus for {people}: earlier lists hold all that is owed to them"
        )
    return messages


def _describe_list(
    state: RoundState, lists: Sequence[PaymentList], current: PaymentList
) -> list[str]:
    """Describe the list of this closing by the lines that its file has."""
    messages: list[str] = []
    if current.lines:
        total = sum((Decimal(one.bonus) for one in current.lines), ZERO)
        people = counted(len(current.lines), "participant")
        messages.append(
            f"bonuses of {people}, {_money(state, total)} in all: {state.folder.path / BONUS}, which is list "
            f"{current.number}{f', made {current.when}' if current.when else ''}; send each list once"
        )
    else:
        messages.append(f"list {current.number} has no line any more, so {BONUS} was not written")
    erased = [one for one in current.payments if not one.participant_id]
    if erased:
        total = sum((Decimal(one.bonus) for one in erased), ZERO)
        messages.append(
            f"list {current.number} also held {_money(state, total)} of {counted(len(erased), 'annotator')} erased "
            "since, whose lines are gone from its file: your record of the erasure says whether they were sent"
        )
    earlier = [one for one in lists if one.opening == current.opening and one is not current]
    if earlier:
        count = counted(
            len(earlier), "earlier list of this closing is", "earlier lists of this closing are"
        )
        names = ", ".join(Path(archived_bonus(one.number)).name for one in earlier)
        messages.append(f"{count} in {state.folder.private} as well ({names}); send each list once")
    return messages


def _describe_rewards(state: RoundState, paid: Sequence[Pay]) -> list[str]:
    """Describe whose bonus the reward of the study replaces, and for whom it was not taken off."""
    messages: list[str] = []
    covered = [one for one in paid if one.amounts.reward >= one.amounts.owed]
    if covered:
        people = counted(len(covered), "participant")
        highest = max(one.amounts.owed for one in covered)
        messages.append(
            f"no bonus for {people}: the study's reward of {_money(state, covered[0].amounts.reward)} is not less than "
            f"what is owed to them, at most {_money(state, highest)}"
        )
    reward = round_amount(state.spec.reward)
    if not reward:
        return messages
    unpaid = [one for one in paid if one.status in UNPAID]
    if unpaid:
        counts = Counter(one.status for one in unpaid)
        kinds = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        messages.append(
            f"the reward is not taken off for {counted(len(unpaid), 'participant')}, to whom Prolific does not pay it: "
            f"submissions {kinds}"
        )
    unlisted = [one for one in paid if not one.amounts.reward and one.status not in UNPAID]
    if unlisted:
        messages.append(
            f"the reward is not taken off for {counted(len(unlisted), 'participant')} who answered only a part of "
            f"their items, so that {DONE} does not list them for approval: where you approve a submission "
            f"nevertheless, Prolific pays {_money(state, reward)} above what is owed"
        )
    return messages


def _describe_others(state: RoundState, pays: Sequence[Pay]) -> list[str]:
    """Describe bonuses that no list can hold, and payments above what is owed."""
    messages: list[str] = []
    path = state.folder.path
    nameless = [
        one
        for one in pays
        if one.is_participant and not one.annotator.participant_id and one.amounts.due
    ]
    if nameless:
        total = sum((one.amounts.due for one in nameless), ZERO)
        messages.append(
            f"bonuses of {counted(len(nameless), 'participant')} without a participant id, {_money(state, total)} in "
            "all, are in no list; payment.csv has them under `left to pay`: add the ids with "
            f"`h2htalk round reopen {path} --annotators LIST` and close the round again, or pay them yourself"
        )
    above = [one for one in pays if one.amounts.listed and one.amounts.excess]
    if above:
        total = sum((one.amounts.excess for one in above), ZERO)
        names = ", ".join(one.annotator.name for one in above)
        messages.append(
            f"the study's reward and the lists pay {_money(state, total)} more than is owed to {names}: a list was "
            "made before the reward was due"
        )
    return messages


def _money(state: RoundState, amount: Decimal) -> str:
    return f"{amount} {state.spec.currency}".rstrip()

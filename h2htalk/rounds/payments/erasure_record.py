"""The manager's record of what an annotator is paid for who is erased from a round: a CSV file outside of the round.

Lines of erased annotators leave the files of bonuses, sent or not. So the manager says which lists were sent, and the
record has the amount of each list, and what is left to pay.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from h2htalk.data.files import reading, replacing
from h2htalk.data.settings import as_path
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.payments.amounts import ZERO
from h2htalk.rounds.payments.lists import Pay, PaymentList, read_payment_lists
from h2htalk.rounds.round_folder import RoundState, now

COLUMNS = (
    "round", "annotator", "participant id", "items completed", "items skipped", "minutes", "owed", "reward",
    "listed as bonus", "lists", "left to pay", "currency", "erased on",
)  # fmt: skip
# An earlier version did not ask which lists were sent.
_LATER_COLUMNS = ("lists", "left to pay")
_EARLIER_COLUMNS = tuple(column for column in COLUMNS if column not in _LATER_COLUMNS)
ALL, NONE = "all", "none"


@dataclass(frozen=True, slots=True)
class ListedBonus:
    """What one list holds for an annotator, and whether the manager has sent that list."""

    number: int
    amount: Decimal
    when: str
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class PaymentRecord:
    """A row of the manager's file that keeps what an erased annotator is paid for."""

    path: Path
    row: list[str]


def sent_bonuses(state: RoundState, annotator: Annotator, sent: str) -> list[ListedBonus]:
    """Return what lists hold for an annotator.

    `sent` says which of these lists the manager has sent: `all`, `none`, or their numbers (`1,2`). Raise RoundError if
    it is empty and there are any, or names a list that does not hold the annotator.
    """
    held = _listed_bonuses(read_payment_lists(state.folder), annotator.id)
    if not held:
        return []
    numbers = {one.number for one in held}
    if not sent:
        lists = " and ".join(_describe(one, state.spec.currency) for one in held)
        raise RoundError(
            f"{annotator.name} is in {lists} of bonuses, and the lines leave the files: say which of these lists you "
            f"have sent, with --sent {ALL}, --sent {NONE} or numbers (--sent {held[0].number}). What was not sent is "
            "left to pay, and the record of the payment says so. Nothing was erased"
        )
    named = {ALL: numbers, NONE: set[int]()}.get(sent)
    if named is None:
        words = sent.replace(",", " ").split()
        named = {int(word) for word in words if word.isdecimal()}
        if not words or not all(word.isdecimal() for word in words) or not named <= numbers:
            known = ", ".join(str(number) for number in sorted(numbers))
            raise RoundError(
                f"--sent is {sent!r}; write {ALL}, {NONE}, or numbers of these lists: {known}"
            )
    return [
        ListedBonus(
            number=one.number, amount=one.amount, when=one.when, is_sent=one.number in named
        )
        for one in held
    ]


def _listed_bonuses(lists: Sequence[PaymentList], annotator: str) -> list[ListedBonus]:
    return [
        ListedBonus(number=one.number, amount=Decimal(payment.bonus), when=one.when)
        for one in lists
        for payment in one.payments
        if payment.annotator == annotator
    ]


def _describe(bonus: ListedBonus, currency: str) -> str:
    amount = f"{bonus.amount} {currency}".rstrip()
    return f"list {bonus.number} ({amount}{f', made {bonus.when}' if bonus.when else ''})"


def left_to_pay(pay: Pay, bonuses: Sequence[ListedBonus]) -> Decimal:
    """Return what is left to pay to an annotator who is erased: what no list holds, or a list that was not sent."""
    return pay.amounts.due + sum((one.amount for one in bonuses if not one.is_sent), ZERO)


def payment_record(
    state: RoundState, pay: Pay, bonuses: Sequence[ListedBonus], payments: str | Path | None
) -> PaymentRecord:
    """Return the row to keep of an annotator's payment. Raise RoundError if no file was named, or a wrong one."""
    annotator = pay.annotator
    if payments is None:
        amounts = f"{counted(pay.completed, 'item')} completed and {pay.skipped:,} skipped"
        raise RoundError(
            f"{annotator.name} has {amounts}, and the law may want a record of what they are paid: name a file outside "
            "of the round with --payments FILE, or add --no-payments if your books have it. Nothing was erased"
        )
    path = as_path(payments, "payments")
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(state.folder.path)):
        raise RoundError(
            f"{path}: lies in the round from which {annotator.name} is erased; name a file elsewhere"
        )
    _read_rows(path)
    money = [""] * 5
    if state.spec.hourly:
        lists = "; ".join(
            f"{one.number}: {one.amount} {'sent' if one.is_sent else 'not sent'}" for one in bonuses
        )
        sums = [pay.amounts.owed, pay.amounts.reward, pay.amounts.listed]
        money = [*map(str, sums), lists, str(left_to_pay(pay, bonuses))]
    row = [
        state.name, annotator.name, annotator.participant_id, str(pay.completed), str(pay.skipped),
        f"{pay.minutes:g}", *money, state.spec.currency, now()[:10],
    ]  # fmt: skip
    return PaymentRecord(path=path, row=row)


def add_record(record: PaymentRecord) -> None:
    """Add a row to a CSV file that only its owner reads, unless an interrupted call has added it."""
    rows = _read_rows(record.path)
    # The last column is the day.
    if any(earlier[:-1] == record.row[:-1] for earlier in rows):
        return
    output = io.StringIO()
    csv.writer(output, lineterminator="\n").writerows([list(COLUMNS), *rows, record.row])
    record.path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(record.path, private=True) as temporary:
        temporary.write_text(output.getvalue(), encoding="utf-8")


def _read_rows(path: Path) -> list[list[str]]:
    """Return the rows of a file of payments below its heading; none if it does not exist.

    Rows of an earlier version get empty cells for what it did not ask. Raise RoundError for another file.
    """
    if not path.exists():
        return []
    with reading(path, RoundError):
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    headings = tuple(rows[0]) if rows else ()
    if headings not in (COLUMNS, _EARLIER_COLUMNS):
        raise RoundError(f"{path}: is no file of payments of erased annotators; name another one")
    records = [dict(zip(headings, row, strict=False)) for row in rows[1:]]
    return [[record.get(column, "") for column in COLUMNS] for record in records]

"""What closing a round writes beside its decisions: agreement, figures of its voters, what each is paid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import VoterFigures, figures_csv, figures_of, qualified
from h2htalk.rounds.aggregation.decisions import Settled, answered_items, votes_on
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.annotators import COLUMNS
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.text.escaping import csv_text

# Of the private folder: who passed the gold items, as `--voters` takes it.
QUALIFIED = "qualified.csv"


def agreement_table(folder: RoundFolder) -> dict[str, Any]:
    """By question: Krippendorff's alpha at the question's level with its interval, votes and items."""
    items = {item.id: item for item in folder.items()}
    answers = list(folder.answers().values())
    return {
        question.name: agreement_of(votes_on(question, answers, items), question.level).to_dict()
        for question in folder.questions()
        if question.decided
    }


def voter_table(folder: RoundFolder, settled: Sequence[Settled]) -> str:
    """CSV, a row a voter, by salted hash: accuracy, speed, warnings."""
    return figures_csv(_figures(folder), folder.spec().pass_gold)


def qualified_table(folder: RoundFolder) -> str | None:
    """CSV of those who passed the gold items and are still there, in the form that `--voters` takes.

    It holds names, so it belongs into the private folder. None where the round has no gold items; a first line alone
    where nobody passed.
    """
    if not any(item.gold for item in folder.items()):
        return None
    passed = qualified(_figures(folder), folder.spec().pass_gold)
    return csv_text(
        COLUMNS,
        [
            (voter.name, " ".join(voter.languages), voter.crisis)
            for voter in folder.voters()
            if voter.here and passed[voter.id]
        ],
    )


def _figures(folder: RoundFolder) -> list[VoterFigures]:
    return figures_of(
        folder.items(), folder.questions(), list(folder.answers().values()), [v.id for v in folder.voters()]
    )


def payment_table(folder: RoundFolder) -> str:
    """CSV, a row a voter by name (so it lies in the private folder): items answered and skipped, minutes paid.

    What was skipped is paid as what was answered: skipping costs a voter nothing.
    """
    spec = folder.spec()
    answers = folder.answers()
    done = answered_items(folder.items(), folder.questions(), answers)
    skipped = skips(answers)
    rows = []
    for voter in folder.voters():
        answered = sum(voter.id in who for who in done.values())
        passed = sum(who == voter.id for _, who in skipped)
        rows.append((voter.name, answered, passed, (answered + passed) * spec.minutes))
    return csv_text(("voter", "items answered", "items skipped", "minutes"), rows)

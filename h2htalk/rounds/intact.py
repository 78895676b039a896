"""Whether a round's files still fit together: somebody may have edited one, or put an old copy back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.answers import Answer
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, questions_for

_BACK = "put the file back as it was"


def require_intact(folder: RoundFolder) -> None:
    """Raise DataError, with file and line where it is one, unless a round can be read and its files fit together.

    Waves must speak of the round's items and voters, and every line of answers.jsonl must be an answer to a question
    of this round, by one of its voters. A copy without `private` says nothing of voters, so they are not compared.

    Raises:
        DataError: as said.
        RoundError, ConfigError: no round is there, or its settings cannot be read.
    """
    spec, items, voters = folder.spec(), folder.items(), folder.voters()
    events, waves = folder.events(), folder.waves()
    by_id = {item.id: item for item in items}
    _refuse_twins(f"{folder.path / 'items.jsonl'}: the item", (item.id for item in items))
    listed = (folder.private / "voters.jsonl").is_file()
    _refuse_twins(f"{folder.private / 'voters.jsonl'}: the voter", (voter.name for voter in voters))
    people = {voter.id for voter in voters} if listed else None
    if not waves and any(event["event"] in ("opened", "closed", "reopened") for event in events):
        raise DataError(f"{folder.path / 'waves.jsonl'}: says nothing of what went out; {_BACK}")
    for number, wave in enumerate(waves, 1):
        if wave.number != number:
            raise DataError(
                f"{folder.path / 'waves.jsonl'}: wave {wave.number} stands where wave {number} belongs; {_BACK}"
            )
        out = {*wave.wanted, *(one for group in wave.groups for one in group), *(s.item for s in wave.seats)}
        if lost := sorted(out - by_id.keys()):
            raise DataError(
                f"{folder.path / 'items.jsonl'}: the item {quoted(lost[0])} went out to voters and is not there "
                f"({len(lost)} such items); {_BACK}"
            )
        if people is not None and (gone := {seat.voter for seat in wave.seats} - people):
            raise DataError(
                f"{folder.private / 'voters.jsonl'}: {len(gone)} voters who were given items are not there; {_BACK}"
            )
    questions = {one.name: one for one in questions_for(spec.kind, [item.labels for item in items])}
    name = folder.name
    for where, answer in folder.answer_lines():
        if answer.round != name:
            raise DataError(f"{where}: an answer of the round {quoted(answer.round)}, not of {name}; {_BACK}")
        if people is not None and answer.voter not in people:
            raise DataError(f"{where}: {quoted(answer.voter)} is no voter of this round; {_BACK}")
        if problem := _problem(answer, by_id, questions):
            raise DataError(f"{where}: {problem}; {_BACK}")


def _problem(answer: Answer, items: Mapping[str, Item], questions: Mapping[str, Question]) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if answer.item not in items:
        return f"{quoted(answer.item)} is no item of this round"
    if answer.question == SKIPPED:
        return (
            ""
            if answer.value in ("yes", None)
            else f"{quoted(answer.value)} is no skip: it must be yes or null"
        )
    question = questions.get(answer.question)
    if question is None:
        return f"no question of this round is called {quoted(answer.question)}"
    if answer.value is None:
        return ""
    try:
        read = question.read(list(answer.value) if isinstance(answer.value, tuple) else answer.value)
    except RoundError as error:
        return str(error)
    # Read kindly, "4" is the rating 4; stored, it would be counted by some figures and not by others.
    if isinstance(read, tuple) and isinstance(answer.value, tuple):
        same = set(read) == set(answer.value)
    else:
        same = read == answer.value and type(read) is type(answer.value)
    if not same:
        return f"{quoted(answer.value)} is no {question.name} as it is stored; that would be {quoted(read)}"
    labels = items[answer.item].labels
    if question.name == "label" and labels and answer.value not in labels:
        return f"{quoted(answer.value)} is none of this item's choices: {', '.join(labels)}"
    return ""


def _refuse_twins(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{what} {quoted(twice[0])} stands there twice; {_BACK}")

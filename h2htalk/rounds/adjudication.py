"""What a closed round left tied, as items of an adjudication, and whether an adjudication is over a round's ties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from h2htalk.data.files import read_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.decisions import TIE, tie_id
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.texts.interface import question_title


def items_of_ties(path: Path) -> Iterator[Item]:
    """One item a tie, with the tied labels to choose from and the question above it.

    Raises:
        RoundError: the round is not closed, or nothing in it is tied.
    """
    folder = RoundFolder(path)
    decisions = path / "decisions.jsonl"
    if folder.state != "closed" or not decisions.is_file():
        raise RoundError(
            f"{path}: this round is not closed, so nothing in it is a tie yet; `h2htalk round close` first"
        )
    items = {item.id: item for item in folder.items()}
    tied = [record for _, record in read_jsonl(decisions) if record["how"] == TIE]
    if not tied:
        raise RoundError(f"{path}: no decision of this round is tied; there is nothing to adjudicate")
    for record in tied:
        item, question = items[record["item"]], str(record["question"])
        yield replace(
            item,
            id=tie_id(item.id, question),
            labels=tuple(record["tied"]),
            note=question_title(question, item.language),
            suggested={},
        )


def source_of(path: Path) -> dict[str, str]:
    """What an adjudication keeps of the round it is over: its name, and the fingerprint of its items."""
    folder = RoundFolder(path)
    return {"name": folder.name, "items_sha256": str(folder.facts().get("items_sha256", ""))}


def require_over(adjudication: RoundFolder, folder: RoundFolder) -> None:
    """Raise RoundError unless an adjudication is over this round's ties."""
    source = adjudication.facts().get("over")
    if not isinstance(source, dict):
        raise RoundError(
            f"{adjudication.path}: this round is no adjudication over another round's ties; "
            f"`h2htalk round open adjudication {folder.path} --out ...` opens one"
        )
    if source != source_of(folder.path):
        raise RoundError(
            f"{adjudication.path}: this adjudication is over the ties of another round, {source.get('name')}; none of "
            f"its decisions can be applied to {folder.path}"
        )

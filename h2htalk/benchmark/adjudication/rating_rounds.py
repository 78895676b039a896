"""Rounds in which people rate the answers of a run, 0 to 5.

`RUN/adjudication/NAME.items.jsonl` holds the items of the round NAME, each with its scenario. An item's id is that of
the judged answer (`judgements.answer_id`), so a rating belongs to one text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.judge.judgements import answer_id
from h2htalk.benchmark.load_run import Run
from h2htalk.data.files import read_jsonl, remove_file, write_jsonl
from h2htalk.data.links import read_links
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.scenario import Scenario
from h2htalk.errors import RoundError
from h2htalk.rounds.item_sources import read_items, scenario_item
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status
from h2htalk.rounds.texts.interface import interface_text

RATING = "rating"  # the question


def open_rating_round(
    run: Run, answers: Sequence[SampleKey], out: Path, options: Mapping[str, Any]
) -> tuple[Status, list[str]]:
    """Open an adjudication round of answers of a run; the same call completes an interrupted opening.

    Args:
        run: where the answers are.
        answers: item and sample of each; the file of items keeps their order, a round sorts them by id.
        out: folder of the round; no other round of the run has this name.
        options: settings as `h2htalk round open` takes them: where, annotators, overlap, format, seed.

    Returns:
        The status of the round, and messages for the manager.

    Raises:
        RoundError, ConfigError, DataError: as `open_round`, and where another round of the run has the name.
    """
    name = out.resolve().name
    for link in read_links(run.data.folder.path):
        if (
            link.path
            and link.kind == "round"
            and link.path.name == name
            and os.path.realpath(link.path) != os.path.realpath(out)
        ):
            raise RoundError(f"{out}: a round {name} was opened from this run before ({link.path}); use another name")
    if run.data.folder.path.resolve() in (out.resolve(), *out.resolve().parents):
        raise RoundError(f"{out}: lies in the run; name a folder outside it")
    path = _items_file(run, name)
    scenarios = {scenario.id: scenario for scenario in run.data.split.scenarios}
    lines = [_line(run, scenarios[key[0]], key) for key in answers]
    known, begun = path.exists(), RoundFolder(out).exists
    if known and begun and [line for _, line in read_jsonl(path)] != lines:
        raise RoundError(f"{out}: this round was opened with other answers; use another name for these")
    write_jsonl(path, lines)
    try:
        return open_round(make_spec("adjudication", str(path), options), out)
    except BaseException:
        if not known and (begun or not RoundFolder(out).exists):
            remove_file(path)
        raise


def _rounds(run: Run) -> list[Path]:
    return [link.path for link in read_links(run.data.folder.path) if link.path and link.kind == "round"]


def answers_in_open_rounds(run: Run, except_name: str) -> dict[str, str]:
    """Return the ids of the answers that other rounds of this run wait for, each with the name of its round."""
    found: dict[str, str] = {}
    for folder in map(RoundFolder, _rounds(run)):
        path = _items_file(run, folder.path.name)
        if folder.path.name != except_name and path.exists() and folder.exists and folder.state != "closed":
            found |= {str(line["item"]["id"]): folder.path.name for _, line in read_jsonl(path)}
    return found


def _items_file(run: Run, name: str) -> Path:
    return run.data.folder.path / "adjudication" / f"{name}.items.jsonl"


def _line(run: Run, scenario: Scenario, key: SampleKey) -> dict[str, Any]:
    """An answer as an item, with the scenario that it answers."""
    answer = run.answers.get(key)
    if not isinstance(answer, Response):
        raise RoundError(f"{key[0]}: sample {key[1]} has no answer, so people cannot rate it")
    # What a text of a round cannot hold is shown as an escape.
    text = answer.answer.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    response = text or interface_text("empty_reply", scenario.language)
    item = replace(scenario_item(scenario, run.data.split.personas), id=answer_id(answer), response=response)
    return {"item": item.to_dict(), "source": scenario.to_dict()}


def require_own_round(run: Run, path: Path) -> None:
    """Raise RoundError unless a round was opened from the answers of this run."""
    folder = RoundFolder(path).require()
    items = _items_file(run, folder.name)
    own = {item.id for item in read_items(str(items), kind="adjudication").items} if items.exists() else set()
    if own.isdisjoint(item.id for item in folder.items()):
        raise RoundError(
            f"{path}: this round was opened from {folder.spec().items}, not from the answers of "
            f"{run.data.folder.path}; name a round of this run"
        )


def read_round_ratings(run: Run, path: Path) -> dict[SampleKey, dict[str, int]]:
    """Read the ratings of a closed round: answer -> annotator (hash) -> rating, 0 to 5.

    Answers that changed since the round was opened are left out.

    Raises:
        RoundError: the round was not opened from this run, or is not closed.
        DataError: a file of the round is invalid; an annotation or decision was edited.
    """
    require_own_round(run, path)
    current = {answer_id(one): key for key, one in run.answers.items() if isinstance(one, Response)}
    ratings: dict[SampleKey, dict[str, int]] = {}
    for one in read_outcome(path).annotations.values():
        if one.question == RATING and isinstance(one.value, int) and one.item in current:
            ratings.setdefault(current[one.item], {})[one.annotator] = one.value
    return ratings

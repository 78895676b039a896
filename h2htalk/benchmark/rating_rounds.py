"""Rounds in which people rate stored replies: opened from the answers of a run or a study, and read for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.judge.judgements import answer_id, item_of
from h2htalk.benchmark.run import Run
from h2htalk.data.files import read_jsonl, remove_file, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.links import read_links
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import RoundError
from h2htalk.rounds.item_sources import scenario_item
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status
from h2htalk.rounds.texts.interface import interface_text

RATING = "rating"  # the question


def open_rating_round(
    run: Run, answers: Sequence[SampleKey], out: Path, options: Mapping[str, Any]
) -> tuple[Status, list[str]]:
    """Open an adjudication round of answers of a run, with settings as `h2htalk round open` takes them; the same call
    completes an interrupted opening. Returns the status, and messages for the manager."""
    lines = []
    scenarios = {scenario.id: scenario for scenario in run.data.split.scenarios}
    personas = run.data.split.personas
    for key in answers:
        answer = run.answers.get(key)
        scenario = scenarios[key[0]]
        if not isinstance(answer, Response):
            raise RoundError(f"{key[0]}: sample {key[1]} has no answer, so people cannot rate it")
        response = response_text(answer.answer, scenario.language)
        item = replace(scenario_item(scenario, personas), id=answer_id(answer), response=response)
        lines.append({"item": item.to_dict(), "source": scenario.to_dict()})
    return open_round_of(run.data.folder, out, "adjudication", lines, options)


def open_round_of(
    folder: RunFolder,
    out: Path,
    kind: str,
    lines: Sequence[dict[str, Any]],
    options: Mapping[str, Any],
    settings: Path | None = None,
) -> tuple[Status, list[str]]:
    """Open a round of items (`item`, `source`) that were made from a run or a study; see `open_rating_round`."""
    name = out.resolve().name
    _require_new_name(folder, out)
    if folder.path.resolve() in (out.resolve(), *out.resolve().parents):
        raise RoundError(f"{out}: lies in the {folder.kind}; name a folder outside it")
    path = _items_file(folder, name)
    has_items = path.exists()
    was_begun = RoundFolder(out).exists
    if has_items and was_begun and [line for _, line in read_jsonl(path)] != lines:
        raise RoundError(
            f"{out}: this round was opened with other answers; use another name for these"
        )
    write_jsonl(path, lines)
    try:
        return open_round(make_spec(kind, str(path), options, settings), out)
    except BaseException:  # passed on; the items of a round that was not opened go
        if not has_items and (was_begun or not RoundFolder(out).exists):
            remove_file(path)
        raise


def _require_new_name(folder: RunFolder, out: Path) -> None:
    """Raise RoundError where another round of the run or study has the same name: both would share a file of items."""
    name = out.resolve().name
    for path in _rounds(folder):
        if path.name == name and path.resolve() != out.resolve():
            earlier = f"a round {name} was opened from this {folder.kind} before ({path})"
            raise RoundError(f"{out}: {earlier}; use another name")


def _rounds(folder: RunFolder) -> list[Path]:
    return [link.path for link in read_links(folder.path) if link.path and link.kind == "round"]


def items_in_open_rounds(run: Run, except_name: str) -> dict[str, str]:
    """The items of which other rounds of this run hold an answer, each with the name of its round."""
    round_by_item: dict[str, str] = {}
    for path in _rounds(run.data.folder):
        folder = RoundFolder(path)
        items = _items_file(run.data.folder, path.name)
        if path.name == except_name or not items.exists():
            continue
        if not folder.exists or folder.state == "closed":
            continue
        for _, line in read_jsonl(items):
            round_by_item[item_of(str(line["item"]["id"]))] = path.name
    return round_by_item


def _items_file(folder: RunFolder, name: str) -> Path:
    return folder.path / "adjudication" / f"{name}.items.jsonl"


def response_text(text: str, language: Language) -> str:
    """A reply as people read it: what a text of a round cannot hold is an escape, an empty one says so."""
    text = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return text.strip() or interface_text("empty_reply", language)


def require_round_of(folder: RunFolder, path: Path) -> RoundFolder:
    """Return a round that was opened from a run or a study; raises RoundError for another one."""
    round_folder = RoundFolder(path).require()
    items = _items_file(folder, round_folder.name)
    ids = set()
    if items.exists():
        ids = {str(line["item"]["id"]) for _, line in read_jsonl(items)}
    if ids.isdisjoint(item.id for item in round_folder.items()):
        source = round_folder.spec().items
        opened = f"this round was opened from {source}, not from the answers of {folder.path}"
        raise RoundError(f"{path}: {opened}; name a round of this {folder.kind}")
    return round_folder


def read_round_ratings(run: Run, path: Path) -> dict[SampleKey, dict[str, int]]:
    """Read the ratings of a closed round: answer -> annotator (hash) -> rating, without answers that changed."""
    require_round_of(run.data.folder, path)
    current = {}
    for key, answer in run.answers.items():
        if isinstance(answer, Response):
            current[answer_id(answer)] = key
    ratings = defaultdict[SampleKey, dict[str, int]](dict)
    for annotation in read_outcome(path).annotations.values():
        if annotation.question != RATING or not isinstance(annotation.value, int):
            continue
        if annotation.item in current:
            ratings[current[annotation.item]][annotation.annotator] = annotation.value
    return ratings

"""Rounds that rate answers of a run: what annotators get, whose ratings count, and what an erasure reaches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from byte_search import files_with
from judged_made import annotators, command, evaluated, rate
from rounds_made import NAMES

from h2htalk.benchmark.adjudicate import open_rating_round, read_round_ratings
from h2htalk.benchmark.judge.judgements import answer_id
from h2htalk.benchmark.run import Run, load_run
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.links import add_link, read_links
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import RoundError
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.item_sources import input_text, scenario_item
from h2htalk.rounds.round_folder import RoundFolder

KEYS = [("mini-en-itinerary-basic-03", 0), ("mini-en-itinerary-basic-01", 0), ("mini-en-itinerary-advanced-02", 0)]
GONE = KEYS[0][0]


@pytest.fixture(scope="module")
def evaluated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluated(tmp_path_factory.mktemp("evaluated") / "run", "baseline:random-reference", "--embedder", "none")


@pytest.fixture
def run(evaluated_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(evaluated_once, tmp_path / "run")


def opened(run: Path, out: Path, **options: object) -> Path:
    settings = {"annotators": str(annotators(run.parent)), "overlap": 2, "format": "csv", **options}
    status, _ = open_rating_round(load_run(run), KEYS, out, settings)
    assert (status.state, status.items, status.assignments) == ("open", 3, 6)
    return out


def closed(run: Path, out: Path) -> Path:
    """A round in which the first annotator gives 1 to the item GONE and 4 to others, the second one more."""
    opened(run, out)
    rate(out, lambda item, annotator: (1 if item == GONE else 4) + NAMES.index(annotator))
    close_round(out)
    return out


def answer_of(run: Run, key: tuple[str, int]) -> Response:
    answer = run.answers[key]
    assert isinstance(answer, Response)
    return answer


def test_a_round_shows_the_scenario_with_the_answer_of_the_run(run: Path, tmp_path: Path) -> None:
    loaded = load_run(run)
    folder = RoundFolder(opened(run, tmp_path / "low"))
    ids = [answer_id(answer_of(loaded, key)) for key in KEYS]
    assert [line["item"]["id"] for _, line in read_jsonl(run / "adjudication" / "low.items.jsonl")] == ids
    items = {item.id: item for item in folder.items()}
    assert list(items) == sorted(ids)
    scenarios = {scenario.id: scenario for scenario in loaded.data.split.scenarios}
    for key, judged in zip(KEYS, ids, strict=True):
        shown = scenario_item(scenarios[key[0]])
        assert (items[judged].turns, items[judged].context) == (shown.turns, shown.context)
        assert items[judged].response == answer_of(loaded, key).answer
        assert folder.sources()[judged] == scenarios[key[0]].to_dict()
    assert [question.name for question in folder.questions()] == ["rating", "comment"]
    assert [(link.kind, link.path) for link in read_links(run)] == [("round", tmp_path / "low")]
    # The same call changes nothing; the name is taken for another folder.
    before = (tmp_path / "low" / "assignment_sets.jsonl").read_bytes()
    opened(run, tmp_path / "low")
    assert (tmp_path / "low" / "assignment_sets.jsonl").read_bytes() == before
    with pytest.raises(RoundError, match="a round low was opened from this run before"):
        opened(run, tmp_path / "elsewhere" / "low")


def test_a_round_of_another_run_is_refused(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    low = closed(run, tmp_path / "low")
    with pytest.raises(
        RoundError, match=r"was opened from .*/run/adjudication/low\.items\.jsonl, not from the answers"
    ):
        read_round_ratings(load_run(other), low)
    # A round of the same name, of other answers.
    settings = {"annotators": str(tmp_path / "people.csv"), "format": "csv"}
    open_rating_round(load_run(other), [("mini-en-itinerary-middle-02", 0)], tmp_path / "others" / "low", settings)
    with pytest.raises(RoundError, match="not from the answers of"):
        read_round_ratings(load_run(other), low)


def test_answers_that_a_spreadsheet_cannot_hold_are_rated_too(run: Path, tmp_path: Path) -> None:
    """An empty reply is an answer; half a character and a null character are shown as escapes."""
    shard = RunFolder(run).shard
    texts = dict(zip((item for item, _ in KEYS), ("", "half \ud83d", "null \0"), strict=True))
    lines = [line for _, line in read_jsonl(shard)]
    write_jsonl(shard, [line | ({"text": texts[line["id"]]} if line["id"] in texts else {}) for line in lines])
    command("score", run)
    low = closed(run, tmp_path / "low")
    shown = {item.id.split("/")[0]: item.response for item in RoundFolder(low).items()}
    assert [shown[item] for item, _ in KEYS] == ["[an empty reply]", "half \\ud83d", "null \\x00"]
    assert len(read_round_ratings(load_run(run), low)) == 3


def test_an_erasure_reaches_the_round_through_the_run(run: Path, tmp_path: Path) -> None:
    low = closed(run, tmp_path / "low")
    loaded = load_run(run)
    answer, left = answer_of(loaded, KEYS[0]), [key for key in KEYS if key[0] != GONE]
    scenario = next(one for one in loaded.data.split.scenarios if one.id == GONE)
    phrases = [scenario.reference[:60], max(map(input_text, scenario.inputs.values()), key=len)[:60]]
    # What a judge said, and files that rest on all answers.
    judged = [
        {"id": answer_id(answer_of(loaded, key)), "sample": 0, "text": "evidence: x", "prompt": ""} for key in KEYS
    ]
    write_jsonl(run / "judgements" / "0123456789abcdef.jsonl", judged)
    for name in ("calibration.json", "label_plan.json"):
        (run / "judgements" / name).write_text(json.dumps({"answers": [one["id"] for one in judged]}))
    assert all({"low/items.jsonl", "low/sources.jsonl"} <= set(files_with(tmp_path, phrase)) for phrase in phrases)
    add_link(tmp_path, "run", run)
    swept = list(sweep(tmp_path, ErasedIds(frozenset({GONE}))))
    assert [(one.kind, one.removed, one.unfinished) for one in swept] == [("run", 1, False), ("round", 1, False)]
    assert not any("was opened from it" in message for one in swept for message in one.messages)
    shared = {"run": ["erased.jsonl"], "low": ["private/erased.jsonl"]}
    for folder, files in shared.items():
        assert files_with(tmp_path / folder, GONE) == files
        assert files_with(tmp_path / folder, answer_id(answer)) in ([], files)
    assert [files_with(tmp_path, phrase) for phrase in phrases] == [[], []]
    assert read_round_ratings(load_run(run), low).keys() == set(left)
    assert [item.id for item in RoundFolder(low).items()] == sorted(answer_id(answer_of(loaded, key)) for key in left)
    assert [line["id"] for _, line in read_jsonl(run / "judgements" / "0123456789abcdef.jsonl")] == [
        one["id"] for one in judged[1:]
    ]
    assert sorted(path.name for path in (run / "judgements").iterdir()) == ["0123456789abcdef.jsonl"]


def test_an_item_whose_id_has_a_slash_is_erased_from_rounds() -> None:
    """The part before the first slash was taken as the id of a judged answer's item."""
    erased = ErasedIds(frozenset(), frozenset({"lab/item-1"}))
    assert erased.covers_item("lab/item-1/0/0123456789abcdef", None)
    assert not erased.covers_item("lab/item-2/0/0123456789abcdef", None)

"""Low answers to people and back: who is asked, what annotators get, what ratings change, what an erasure reaches."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest

from h2htalk.benchmark.adjudicate import close_adjudication
from h2htalk.benchmark.judge.judgements import answer_id, item_of
from h2htalk.benchmark.rating_rounds import open_rating_round, read_round_ratings
from h2htalk.benchmark.run import load_run
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.links import add_link, read_links
from h2htalk.data.parquet import read_parquet
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import RoundError
from h2htalk.rounds.item_sources import input_text, scenario_item
from h2htalk.rounds.lifecycle import close_round
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with
from support.judged_runs import annotators, command, evaluated, given, judge_file, rate
from support.kills import interrupted_at
from support.rounds import NAMES
from support.spreadsheet_rounds import fill, spreadsheets, workbook_path

S_PARTS = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l", "ss")
WORST = (
    "itinerary-advanced-07",
    "itinerary-basic-07",
    "itinerary-advanced-01",
    "itinerary-basic-01",
)


def with_commands(run: Path, out: Path, *options: object) -> str:
    people = ("--annotators", annotators(run.parent), "--overlap", 2)
    return command("adjudicate", "open", run, "--out", out, *people, *options)


def rated(run: Path) -> dict[str, tuple[float, int]]:
    """Item -> people's mean rating, and how many annotators gave one."""
    lines = [line for _, line in read_jsonl(run / "adjudication" / "ratings.jsonl")]
    return {item_of(line["answer"]): (line["rating"], line["annotators"]) for line in lines}


def by_hand(run: Path, people: Mapping[str, float]) -> dict[str, float]:
    """Levels I to III as 20 x the mean of 3 S + 0.4 R, with people's ratings where they gave some."""
    scores = max((run / "scores").glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    values: dict[str, list[float]] = {}
    for _, row in read_parquet(scores):
        subtask = row["id"].removeprefix("mini-en-").rpartition("-")[0].replace("-", "_")
        if SUBTASKS[subtask].level:
            s = fmean(row[part] for part in S_PARTS)
            values.setdefault(subtask, []).append(
                3 * s + 0.4 * people.get(row["id"], given(row["id"]))
            )
    return {subtask: 20 * fmean(known) for subtask, known in values.items()}


def cells(run: Path) -> dict[str, float]:
    row = next(csv.DictReader((run / "tables" / "table2.csv").open(encoding="utf-8")))
    return {level: float(row[level]) for level, subtask in SUBTASKS.items() if subtask.level}


def items_of(path: Path) -> list[str]:
    return [item_of(line["item"]["id"]) for _, line in read_jsonl(path)]


def test_from_the_judge_to_people_and_into_the_table(run: Path, tmp_path: Path) -> None:
    low = tmp_path / "low"
    assert cells(run) == pytest.approx(by_hand(run, {}), abs=1e-9)
    trigger = ("--human-trigger", "judge", "--budget", 4)
    people = ("--annotators", annotators(tmp_path), "--overlap", 2)
    printed = command("adjudicate", "open", run, "--out", low, *trigger, *people)
    sends = "of 12 items of levels I to III, Eq. 4 (J < 3.5) would send 12 to people"
    for text in (sends, "--human-trigger judge (R < 3.5) 8\n", "the budget allows 4 of 8 items"):
        assert text in printed
    assert items_of(run / "adjudication" / "low.items.jsonl") == [
        f"mini-en-{item}" for item in WORST
    ]
    # The first annotator gives 2, 3, 4, 5 in the order of ids, the second one less.
    first = {
        item.id: rating for item, rating in zip(RoundFolder(low).items(), (2, 3, 4, 5), strict=True)
    }
    for sheet in spreadsheets(RoundFolder(low)):
        less = NAMES.index(sheet.annotator.name)
        typed = {
            n: {"rating": first[one.item] - less} for n, one in enumerate(sheet.assignments, 1)
        }
        if less:
            unfinished = dict(list(typed.items())[:-1])
            fill(workbook_path(RoundFolder(low), sheet.stem), unfinished)
            # Closing is refused while somebody still works, and nothing of the round counts.
            assert "1 assignment is missing" in command("adjudicate", "close", run, low, code=2)
            assert not (run / "adjudication" / "ratings.jsonl").exists()
        fill(workbook_path(RoundFolder(low), sheet.stem), typed)
    assert "8 of 8" in command("round", "status", low)
    command("round", "close", low)
    before = cells(run)
    printed = command("adjudicate", "close", run, low)
    assert "8 ratings of 4 answers" in printed
    changed = [
        name for name, value in cells(run).items() if round(value, 2) != round(before[name], 2)
    ]
    line = next(line for line in printed.splitlines() if line.startswith("changed in the table: "))
    for name in changed:  # nothing said which figures of the table had changed
        assert (
            f"Itinerary {SUBTASKS[name].column} {before[name]:.2f} to {cells(run)[name]:.2f}"
            in line
        )
    assert (bool(changed), "Overall" in line) == (True, True)
    means = {item_of(judged): rating - 0.5 for judged, rating in first.items()}
    assert rated(run) == {item: (rating, 2) for item, rating in means.items()}
    assert cells(run) == pytest.approx(by_hand(run, means), abs=1e-9)
    assert cells(run) != pytest.approx(by_hand(run, {}), abs=0.1)
    assert "people rated 4 items (" in load_run(run).summary.signature.protocol["judge"]


def test_a_second_round_has_what_was_not_rated(run: Path, tmp_path: Path) -> None:
    with_commands(run, tmp_path / "first", "--budget", 5)
    rate(tmp_path / "first", lambda *_: 2)
    # A complete round that is open is closed.
    command("adjudicate", "close", run, tmp_path / "first")
    assert RoundFolder(tmp_path / "first").state == "closed"
    first = rated(run)
    printed = with_commands(run, tmp_path / "second")
    assert "Eq. 4 (J < 3.5) would send 12 to people" in printed
    assert "people rated 5 of these 12 items before" in printed
    second = items_of(run / "adjudication" / "second.items.jsonl")
    assert (len(second), first.keys() & set(second)) == (7, set())
    rate(tmp_path / "second", lambda *_: 4)
    command("adjudicate", "close", run, tmp_path / "second")
    assert rated(run) == first | dict.fromkeys(second, (4, 2))
    # An annotator's answers are taken out of the first round: its ratings are replaced, the others stay.
    command("round", "remove-annotator", tmp_path / "first", NAMES[0], "--why", "left")
    command("adjudicate", "close", run, tmp_path / "first")
    assert rated(run) == dict.fromkeys(first, (2, 1)) | dict.fromkeys(second, (4, 2))
    people = {item: rating for item, (rating, _) in rated(run).items()}
    assert cells(run) == pytest.approx(by_hand(run, people), abs=1e-9)
    assert "there is no item for people" in command(
        "adjudicate", "open", run, "--out", tmp_path / "third", code=2
    )
    assert not (tmp_path / "third").exists()


def test_a_panel_disagrees_and_people_decide(tmp_path: Path) -> None:
    """With references as answers, S is 1 and J is 3 + 0.4 R: ratings decide on which side of 3.5 it is."""
    texts = [
        (s.id, sample, s.reference + " " * sample)
        for s in load_split("mini@1").scenarios
        for sample in range(2)
    ]
    lines = [{"id": item, "sample": sample, "text": text} for item, sample, text in texts]
    write_jsonl(tmp_path / "answers.jsonl", lines)
    run = evaluated(
        tmp_path / "run",
        f"scripted:{tmp_path / 'answers.jsonl'}",
        "--samples",
        2,
        "--temperature",
        1,
    )
    passes, fails, unread = (
        f"mini-en-itinerary-{name}" for name in ("basic-01", "middle-02", "advanced-04")
    )
    first = judge_file(run, lambda item: {fails: 0}.get(item, 5), "first")
    second = judge_file(
        run, lambda item: {passes: 1, fails: 2, unread: None}.get(item, 5), "second"
    )
    command(
        "judge", "run", run, "--judge", first, "--judge", second, code=3
    )  # a reply that was not read
    out = tmp_path / "disputed"
    printed = with_commands(run, out, "--disagreement", 2)
    assert "of 12 items of levels I to III, Eq. 4 (J < 3.5) would send 1 to people" in printed
    assert "judges differ by 2 or more on 2 items" in printed
    reason = "malformed_output"
    assert (
        f"2 answers unjudged, and so not low: {unread}/0 ({reason}), {unread}/1 ({reason})"
        in printed
    )
    # All samples, the most disputed item first.
    assert items_of(run / "adjudication" / "disputed.items.jsonl") == [passes, passes, fails, fails]
    rate(out, lambda item, _: 0 if item == passes else 5)
    printed = command("adjudicate", "close", run, out, code=3)
    assert "turn 1 pass of J (3.5 or more) into a fail, and 1 fail into a pass" in printed
    scores = load_run(run).item_scores
    assert (scores[passes].j, scores[fails].j) == (pytest.approx(3.0), pytest.approx(5.0))


def test_without_s_the_judge_alone_decides_and_an_answer_that_changed_is_not_rated(
    tmp_path: Path,
) -> None:
    run = evaluated(tmp_path / "run", "baseline:random-reference", "--embedder", "none")
    low = tmp_path / "low"
    assert "was not judged" in command("adjudicate", "open", run, "--out", low, code=2)
    command("judge", "run", run, "--judge", judge_file(run))
    assert "use --human-trigger judge" in command("adjudicate", "open", run, "--out", low, code=2)
    printed = with_commands(run, low, "--human-trigger", "judge", "--budget", 2)
    assert "--human-trigger judge (R < 3.5) 8\n" in printed
    rate(low, lambda *_: 5)
    gone, stays = (f"mini-en-{item}" for item in WORST[:2])
    rewrite(run, {gone: "Else."})
    printed = command("adjudicate", "close", run, low, code=3)
    assert (
        "2 ratings of 1 answer\n1 answer without a rating: skipped, or changed since the round was opened"
        in printed
    )
    assert "without S there is no J: the ratings stand apart" in printed
    assert rated(run) == {stays: (5, 2)}
    people = {
        one.id for item in load_run(run).item_scores.values() for one in item.samples if one.people
    }
    assert people == {stays}


@pytest.mark.slow
def test_closing_that_was_killed_at_any_write_is_completed_by_the_same_command(
    tmp_path: Path,
) -> None:
    begun = evaluated(
        tmp_path / "begun" / "run", "baseline:random-reference", "--embedder", "none", "--limit", 11
    )
    command("judge", "run", begun, "--judge", judge_file(begun, lambda _: 1))
    for number, name in enumerate(("first", "second"), 1):
        with_commands(begun, tmp_path / "begun" / name, "--human-trigger", "judge", "--budget", 1)
        rate(tmp_path / "begun" / name, partial(lambda given, *_: given, number))
        if number == 1:
            close_adjudication(begun, tmp_path / "begun" / name)
    for write in range(60):
        folder = shutil.copytree(tmp_path / "begun", tmp_path / str(write))
        if not interrupted_at(
            write, partial(close_adjudication, folder / "run", folder / "second")
        ):
            break
        command("adjudicate", "close", folder / "run", folder / "second")
        assert load_run(folder / "run").summary.judging.people == 2
        assert sorted(rated(folder / "run").values()) == [(1, 2), (2, 2)], write
    assert write > 8


def test_what_cannot_be_opened(run: Path, tmp_path: Path) -> None:
    for options, message in (
        (("--human-trigger", "R"), "--human-trigger: must be 'J' or 'judge'"),
        (("--disagreement", 1), "--disagreement compares the judges of a panel"),
        (("--overlap", 3, "--annotators", "nobody.csv"), "nobody.csv"),
    ):
        assert message in command(
            "adjudicate", "open", run, "--out", tmp_path / "low", *options, code=2
        )
        assert not (tmp_path / "low" / "round.json").exists()
    assert not (run / "links.jsonl").exists()


KEYS = [
    ("mini-en-itinerary-basic-03", 0),
    ("mini-en-itinerary-basic-01", 0),
    ("mini-en-itinerary-advanced-02", 0),
]
GONE = KEYS[0][0]


def rewrite(run: Path, texts: Mapping[str, str]) -> None:
    """Put other texts into stored answers, and score them: their judgements are missing."""
    calls_file = RunFolder(run).calls_file
    lines = [line for _, line in read_jsonl(calls_file)]
    write_jsonl(
        calls_file,
        [line | ({"text": texts[line["id"]]} if line["id"] in texts else {}) for line in lines],
    )
    command("score", run, code=3)


def opened(run: Path, out: Path) -> Path:
    settings = {"annotators": str(annotators(run.parent)), "overlap": 2}
    status, _ = open_rating_round(load_run(run), KEYS, out, settings)
    assert (status.state, status.items, status.assignments) == ("open", 3, 6)
    return out


def closed(run: Path, out: Path) -> Path:
    rate(opened(run, out), lambda *_: 1)
    close_round(out)
    return out


def answers_of(run: Path) -> list[Response]:
    found = load_run(run).answers
    return [answer for key in KEYS if isinstance(answer := found[key], Response)]


def test_a_round_shows_the_scenario_with_the_answer_of_its_own_run(
    run: Path, tmp_path: Path
) -> None:
    low = tmp_path / "low"
    other = shutil.copytree(run, tmp_path / "other")
    folder = RoundFolder(opened(run, low))
    assert items_of(run / "adjudication" / "low.items.jsonl") == [key[0] for key in KEYS]
    items = {item.id: item for item in folder.items()}
    scenarios = {scenario.id: scenario for scenario in load_run(run).data.split.scenarios}
    for answer in answers_of(run):
        own = items[answer_id(answer)]
        shown = scenario_item(scenarios[answer.id])
        assert (own.turns, own.context, own.response) == (shown.turns, shown.context, answer.answer)
        assert folder.sources()[own.id] == scenarios[answer.id].to_dict()
    assert [(link.kind, link.path) for link in read_links(run)] == [("round", low)]
    # The same call changes nothing; the name is taken for another folder.
    before = (low / "assignment_sets.jsonl").read_bytes()
    opened(run, low)
    assert (low / "assignment_sets.jsonl").read_bytes() == before
    with pytest.raises(RoundError, match="a round low was opened from this run before"):
        opened(run, tmp_path / "elsewhere" / "low")
    with pytest.raises(
        RoundError, match=r"from .*/run/adjudication/low\.items\.jsonl, not from the answers of"
    ):
        read_round_ratings(load_run(other), low)


def test_answers_that_a_spreadsheet_cannot_hold_are_rated_too(run: Path, tmp_path: Path) -> None:
    """An empty reply is an answer; half a character and a null character are shown as escapes."""
    rewrite(run, dict(zip((item for item, _ in KEYS), ("", "half \ud83d", "null \0"), strict=True)))
    low = closed(run, tmp_path / "low")
    shown = {item.id.split("/")[0]: item.response for item in RoundFolder(low).items()}
    assert [shown[item] for item, _ in KEYS] == ["[an empty reply]", "half \\ud83d", "null \\x00"]
    assert len(read_round_ratings(load_run(run), low)) == 3


def test_an_erasure_reaches_the_round_through_the_run(run: Path, tmp_path: Path) -> None:
    low = closed(run, tmp_path / "low")
    gone, *left = answers_of(run)
    scenario = next(one for one in load_run(run).data.split.scenarios if one.id == GONE)
    phrases = [
        scenario.reference[:60],
        max(map(input_text, scenario.inputs.values()), key=len)[:60],
    ]
    assert files_with(run / "judgements", GONE) == ["calls.jsonl"]
    for name in ("calibration.json", "label_plan.json"):  # files that rest on all answers
        (run / "judgements" / name).write_text(json.dumps({"answers": [answer_id(gone)]}))
    assert all(
        {"low/items.jsonl", "low/sources.jsonl"} <= set(files_with(tmp_path, phrase))
        for phrase in phrases
    )
    add_link(tmp_path, "run", run)
    swept = list(sweep(tmp_path, ErasedIds(frozenset({GONE}))))
    assert [(one.kind, one.removed, one.unfinished) for one in swept] == [
        ("run", 1, False),
        ("round", 1, False),
    ]
    assert not any("was opened from it" in message for one in swept for message in one.messages)
    for folder, files in {"run": ["erased.jsonl"], "low": ["private/erased.jsonl"]}.items():
        assert files_with(tmp_path / folder, GONE) == files
        assert files_with(tmp_path / folder, answer_id(gone)) in ([], files)
    assert [files_with(tmp_path, phrase) for phrase in phrases] == [[], []]
    assert read_round_ratings(load_run(run), low).keys() == {(one.id, one.sample) for one in left}
    assert [item.id for item in RoundFolder(low).items()] == sorted(map(answer_id, left))
    assert files_with(run / "judgements", left[0].id) == ["calls.jsonl"]
    assert not {"calibration.json", "label_plan.json"} & {
        path.name for path in (run / "judgements").iterdir()
    }

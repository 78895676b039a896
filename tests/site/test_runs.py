"""The table of what lies below a folder."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import product
from pathlib import Path

from h2htalk.data.files import writer_lock
from h2htalk.rounds.lifecycle import open_round
from h2htalk.site.next_steps import next_steps
from h2htalk.site.runs import list_runs
from h2htalk.text.tables import Table
from support.command_line import h2htalk_here
from support.curations import dialogue, finished, gathered
from support.rounds import candidate, crowd_round, spec_of
from support.runs import baseline_run
from support.studies import studied


def rows(table: Table) -> dict[str, dict[str, str]]:
    return {row["folder"]: row for row in csv.DictReader(io.StringIO(table.to_csv()))}


def states(folder: Path) -> dict[str, str]:
    return {name: row["state"] for name, row in rows(list_runs(folder)).items()}


def test_runs_and_studies_have_their_headline_with_its_interval(tmp_path: Path) -> None:
    baseline_run(tmp_path / "a" / "run")
    studied(tmp_path / "b", "instructions", limit=4)
    listed_rows = rows(list_runs(tmp_path))
    assert list(listed_rows) == ["a/run", "b/study"]
    run, study = listed_rows.values()
    assert (run["kind"], run["model"], run["split"], run["state"]) == (
        "run",
        "baseline:constant",
        "mini 1",
        "complete",
    )
    assert (run["scored"], len(run["protocol"]), len(run["when"])) == ("22 of 22", 8, 10)
    assert re.fullmatch(r"Lexical mean .*\)", run["figure"])
    assert (study["kind"], study["model"], study["US $"]) == ("study", "scripted:model.jsonl", "")
    assert study["figure"] == "Points met, with SAP: -"  # there is no judge


def test_the_states_of_a_run(tmp_path: Path) -> None:
    for name in ("complete", "unscored", "erasing", "running", "damaged"):
        baseline_run(tmp_path / name)
    summary = tmp_path / "damaged" / "summary.json"  # it was edited
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"model": "better"}))
    (tmp_path / "unscored" / "summary.json").unlink()
    (tmp_path / "erasing" / ".erasing").touch()
    with writer_lock(tmp_path / "running" / "calls.jsonl"):
        listed_rows = states(tmp_path)
    if not Path("/proc/locks").exists():
        listed_rows["running"] = "running"
    assert listed_rows == {name: name for name in listed_rows}
    assert len(listed_rows) == 5


def test_damaged_folders_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    """No file of any kind of folder ends the list with a traceback."""
    markers = (
        "run.json",
        "study.json",
        "round.json",
        "release.json",
        "attempt.json",
        "workspace.json",
    )
    texts = ("{", "[]", "{}", '{"spec": 3}', '{"spec": {}, "signature": {}}', "")
    for (number, text), marker in product(enumerate(texts), markers):
        run_folder = tmp_path / f"{number}" / marker.partition(".")[0]
        run_folder.mkdir(parents=True)
        (run_folder / marker).write_text(text)
    table = list_runs(tmp_path)
    listed_rows = {
        name: state for name, state in states(tmp_path).items() if not name.endswith("workspace")
    }
    assert listed_rows == dict.fromkeys(listed_rows, "damaged")
    assert len(listed_rows) == 5 * 6
    noted = {note.partition(": ")[0] for note in table.notes}
    assert set(listed_rows) <= noted


def test_figures_whose_replies_are_gone_are_not_complete(tmp_path: Path) -> None:
    (studied(tmp_path, "instructions", limit=4).study.path / "calls.jsonl").unlink()
    (baseline_run(tmp_path / "run") / "calls.jsonl").unlink()
    assert states(tmp_path) == {"run": "damaged", "study": "damaged"}


def test_a_curation_says_which_stage_it_has_reached_and_what_it_kept(tmp_path: Path) -> None:
    """It was `incomplete` for ever, and said only how many dialogues are unread."""
    workspace = gathered(tmp_path / "W", [dialogue(1), dialogue(2), dialogue(3)])
    row = rows(list_runs(tmp_path))["W"]
    assert (row["state"], row["scored"], row["figure"]) == (
        "incomplete",
        "1 of 6 stages",
        "3 dialogues of 3 dialogues",
    )
    finished(workspace.path, "safety", [dialogue(1), dialogue(2)])
    assert rows(list_runs(tmp_path))["W"]["figure"] == "2 dialogues of 3 dialogues, 2 unread"
    for stage in ("anonymize", "dedup", "compose"):
        finished(workspace.path, stage, [dialogue(1)])
    finished(workspace.path, "review", [candidate("made-000001:dialogue_base", "accept")])
    row = rows(list_runs(tmp_path))["W"]
    assert (row["state"], row["scored"]) == ("complete", "6 of 6 stages")
    assert row["figure"] == "1 candidate of 3 dialogues, 2 unread"
    with workspace.locked():
        state = states(tmp_path)["W"]
        steps = next_steps(tmp_path)
    if Path("/proc/locks").exists():
        assert (state, steps) == ("running", ["W: another process works in it"])
    assert "purged" not in states(tmp_path).values()


def test_a_round_says_what_is_owed_and_what_was_decided(tmp_path: Path) -> None:
    path = crowd_round(tmp_path)
    row = rows(list_runs(tmp_path))[path.name]
    assert (row["state"], row["figure"]) == ("closed", "keep: keep 2, drop 1, tie 1")
    open_round(spec_of("expert", path, 3), tmp_path / "expert")
    row = rows(list_runs(tmp_path))["expert"]
    assert (row["state"], re.fullmatch(r"0 of \d+ assignments", row["figure"]) is not None) == (
        "open",
        True,
    )


def test_links_are_not_followed_and_the_depth_is_limited(tmp_path: Path) -> None:
    baseline_run(tmp_path / "outside" / "run")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "loop").symlink_to(inside)
    assert list_runs(inside).notes == ["nothing found"]
    deep = inside.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    (deep / "run.json").write_text("{}")
    assert not list_runs(inside).rows


def test_the_command_prints_each_form(tmp_path: Path) -> None:
    baseline_run(tmp_path / "run")
    lines = [
        h2htalk_here("runs", tmp_path, "--format", form).stdout
        for form in ("terminal", "csv", "json")
    ]
    assert all("baseline:constant" in text for text in lines)
    assert json.loads(lines[2])["rows"][0]["state"] == "complete"
    done = h2htalk_here("runs", tmp_path / "missing")
    assert (done.returncode, "no such folder" in done.stderr) == (2, True)

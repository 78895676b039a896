"""The table of what lies below a folder."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import product
from pathlib import Path

from command_line import h2htalk_here
from runs_made import baseline_run
from studies_made import studied

from h2htalk.data.files import writer_lock
from h2htalk.site.runs import list_runs
from h2htalk.text.tables import Table


def rows(table: Table) -> dict[str, dict[str, str]]:
    return {row["folder"]: row for row in csv.DictReader(io.StringIO(table.to_csv()))}


def states(folder: Path) -> dict[str, str]:
    return {name: row["state"] for name, row in rows(list_runs(folder)).items()}


def test_runs_and_studies_have_their_headline_with_its_interval(tmp_path: Path) -> None:
    baseline_run(tmp_path / "a" / "run")
    studied(tmp_path / "b", "instructions", limit=4)
    found = rows(list_runs(tmp_path))
    assert list(found) == ["a/run", "b/study"]
    run, study = found.values()
    assert (run["kind"], run["model"], run["split"], run["state"]) == ("run", "baseline:constant", "mini 1", "complete")
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
        found = states(tmp_path)
    if not Path("/proc/locks").exists():
        found["running"] = "running"
    assert found == {name: name for name in found}
    assert len(found) == 5


def test_damaged_folders_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    """No file of any kind of folder ends the list with a traceback."""
    markers = ("run.json", "study.json", "round.json", "release.json", "attempt.json", "workspace.json")
    texts = ("{", "[]", "{}", '{"spec": 3}', '{"spec": {}, "signature": {}}', "")
    for (number, text), marker in product(enumerate(texts), markers):
        place = tmp_path / f"{number}" / marker.partition(".")[0]
        place.mkdir(parents=True)
        (place / marker).write_text(text)
    table = list_runs(tmp_path)
    found = {name: state for name, state in states(tmp_path).items() if not name.endswith("workspace")}
    assert found == dict.fromkeys(found, "damaged")
    assert len(found) == 5 * 6
    assert all(any(note.startswith(f"{name}: ") for note in table.notes) for name in found)


def test_figures_whose_replies_are_gone_are_not_complete(tmp_path: Path) -> None:
    (studied(tmp_path, "instructions", limit=4).study.path / "calls.jsonl").unlink()
    (baseline_run(tmp_path / "run") / "calls.jsonl").unlink()
    assert states(tmp_path) == {"run": "damaged", "study": "damaged"}


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
    shown = [h2htalk_here("runs", tmp_path, "--format", form).stdout for form in ("terminal", "csv", "json")]
    assert all("baseline:constant" in text for text in shown)
    assert json.loads(shown[2])["rows"][0]["state"] == "complete"
    done = h2htalk_here("runs", tmp_path / "missing")
    assert (done.returncode, "no such folder" in done.stderr) == (2, True)

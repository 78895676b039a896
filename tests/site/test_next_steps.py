"""Which step is due for each folder: what `h2htalk next` prints, and whether its commands do it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.release.build import build_release
from h2htalk.curation.stages import STAGES
from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.errors import ConfigError
from h2htalk.site.next_steps import next_steps
from support.command_line import h2htalk_here
from support.curations import dialogue, finished, gathered
from support.release_rounds import ALLOW_UNREAD, candidate, different, voted, write_spec
from support.rounds import answer, begin, expert, people
from support.runs import baseline_run
from support.studies import studied


def steps(folder: Path) -> dict[str, tuple[str, str]]:
    """Folder -> what is due, and the command."""
    steps_found: dict[str, tuple[str, str]] = {}
    for line in next_steps(folder):
        name, _, step = line.partition(": ")
        what, _, command = step.partition(": h2htalk ")
        steps_found[name] = (what, command)
    return steps_found


def does(command: str) -> None:
    """Run a command that was printed."""
    result = h2htalk_here(*shlex.split(command))
    assert result.returncode == 0, result.stderr


def test_a_run_without_figures_is_to_be_scored(tmp_path: Path) -> None:
    baseline_run(tmp_path / "of mine")
    (tmp_path / "of mine" / "summary.json").unlink()
    what, command = steps(tmp_path)["of mine"]
    assert what == "it is not scored"
    does(command)
    assert steps(tmp_path)["of mine"][0] == "it is scored"


def test_a_study_that_is_scored_waits_for_people(tmp_path: Path) -> None:
    studied(tmp_path, "instructions", limit=4)
    what, command = steps(tmp_path)["study"]
    assert what == "it is scored; to have people read its replies"
    assert command.startswith("study open-round ")


def test_a_round_waits_for_answers_and_is_closed_when_all_are_here(tmp_path: Path) -> None:
    path = begin(tmp_path, "expert", 2, people=2, overlap=2)
    what, command = steps(tmp_path)["round"]
    assert what == "0 of 2 items are done; people owe 4 assignments"
    does(command)
    answer(path, lambda item, _: expert())
    does(f"round status {path}")
    what, command = steps(tmp_path)["round"]
    assert (what, command) == ("all answers are here", f"round close {path}")
    does(command)
    what, command = steps(tmp_path)["round"]
    assert what == "it is closed; a release takes it, where its `rounds` names no others"


def test_a_curation_goes_from_stage_to_stage_to_rounds_and_a_release(tmp_path: Path) -> None:
    gathered(tmp_path / "early", [dialogue(1)])
    stages = list(STAGES)
    assert steps(tmp_path)["early"] == (
        f"the stage {stages[1]} is due (1 of {len(STAGES)} stages are made)",
        "curate run SPEC",
    )
    whole_run = tmp_path / "whole"
    whole_run.mkdir()
    every_stage(whole_run / "W", [])
    assert steps(whole_run)["W"] == (
        "every stage is made, and no candidate is left; why",
        f"curate funnel {whole_run / 'W'}",
    )
    workspace_folder = tmp_path / "made"
    workspace_folder.mkdir()
    voted(workspace_folder, [different(number) for number in range(1, 5)])
    assert steps(workspace_folder)["experts"] == (
        "it is closed; a release takes it, where its `rounds` names no others",
        "release build SPEC --out RELEASE",
    )
    build_release(write_spec(workspace_folder, quota=4), workspace_folder / "release")
    steps_found = steps(workspace_folder)
    assert steps_found["crowd"] == (
        f"it is closed, and experts read what it kept: see {workspace_folder / 'experts'}",
        "",
    )
    assert steps_found["experts"] == (
        f"it is closed, and a release was built of it: see {workspace_folder / 'release'}",
        "",
    )
    assert steps_found["release"][1] == "release read SPEC --guard MODEL"


def every_stage(path: Path, records: list[dict[str, Any]]) -> None:
    """A workspace in which every stage is finished, and the last one kept these candidates."""
    last = list(STAGES)[-1]
    for stage in STAGES:
        finished(path, stage, records if stage == last else [])


def candidates(first: int, last: int) -> list[dict[str, Any]]:
    return [candidate(different(number)).to_dict() for number in range(first, last + 1)]


def opened(folder: Path, items: Path, out: Path, *extra_options: str) -> None:
    """Open a crowd round with the command that users type."""
    annotators = people(folder / "people.csv", "ann", "bo")
    settings = folder / "people.toml"
    settings.write_text("planted = false\n", encoding="utf-8")
    options = ["--annotators", annotators, "--out", out, "--overlap", "2", "--settings", settings]
    result = h2htalk_here("round", "open", "crowd", items, *options, *extra_options)
    assert result.returncode == 0, result.stderr


def test_what_a_workspace_links_elsewhere_is_told_too(tmp_path: Path) -> None:
    """As docs/how-to/exports-of-chats.md has it: the rounds lie beside the workspace that `next` is asked about."""
    workspace = tmp_path / "work"
    every_stage(workspace, candidates(1, 2))
    open_crowd = f"round open crowd {workspace}"
    assert steps(workspace)[str(workspace)] == (
        "every stage is made; no crowd round of it is open or closed",
        open_crowd,
    )
    crowd_path = tmp_path / "rounds" / "crowd"
    opened(tmp_path, workspace, crowd_path)
    steps_found = steps(workspace)
    assert steps_found[str(workspace)] == (
        f"every stage is made, and people vote on what it made: see {crowd_path}",
        "",
    )
    what, command = steps_found[str(crowd_path)]
    assert what == "0 of 2 items are done; people owe 4 assignments"
    assert command == f"round status {crowd_path}"
    all_steps = steps(tmp_path)
    assert sorted(all_steps) == ["rounds/crowd", "work"]


def test_moved_folders_are_found_by_their_links(tmp_path: Path) -> None:
    before = tmp_path / "before"
    after = tmp_path / "after"
    before.mkdir()
    voted(before, [different(number) for number in range(1, 5)])
    build_release(write_spec(before, quota=4), before / "release")
    before.rename(after)
    steps_found = steps(after)
    assert steps_found["crowd"] == (
        f"it is closed, and experts read what it kept: see {after / 'experts'}",
        "",
    )
    assert (
        steps_found["experts"][0]
        == f"it is closed, and a release was built of it: see {after / 'release'}"
    )


def test_a_round_of_a_file_in_a_workspace_is_no_crowd_round_of_it(tmp_path: Path) -> None:
    workspace = tmp_path / "W"
    every_stage(workspace, candidates(1, 2))
    lines = [json.dumps(candidate) for candidate in candidates(3, 4)]
    (workspace / "some.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    opened(tmp_path, workspace / "some.jsonl", tmp_path / "of-file")
    assert steps(tmp_path)["W"][1] == f"round open crowd {workspace}"


def test_candidates_that_came_later_are_to_be_asked_about(tmp_path: Path) -> None:
    workspace = tmp_path / "W"
    every_stage(workspace, candidates(1, 2))
    opened(tmp_path, workspace, tmp_path / "crowd")
    finished(workspace, "review", candidates(1, 5))
    what, command = steps(tmp_path)["W"]
    assert (
        what
        == f"every stage is made; 3 candidates are in no crowd round (others: {tmp_path / 'crowd'})"
    )
    assert command == f"round open crowd {workspace} --new"
    opened(tmp_path, workspace, tmp_path / "later", "--new")
    what, command = steps(tmp_path)["W"]
    assert (
        what
        == f"every stage is made, and people vote on what it made: see {tmp_path / 'crowd'}, {tmp_path / 'later'}"
    )
    assert command == ""


def test_without_a_reviewer_people_can_vote(tmp_path: Path) -> None:
    workspace = tmp_path / "W"
    for stage in STAGES:
        if stage == "compose":
            break
        finished(workspace, stage, [])
    what, command = steps(tmp_path)["W"]
    assert (
        what
        == "the stage compose is due (4 of 6 stages are made), which needs `model` in [compose] of SPEC"
    )
    assert command == "curate run SPEC"
    finished(workspace, "compose", candidates(1, 2))
    line = next_steps(tmp_path)[0]
    assert line == (
        "W: every stage but review is made; set `model` in [review] of SPEC and run `h2htalk curate run SPEC`, or have "
        f"people vote without a reviewer: h2htalk round open crowd {workspace}"
    )
    opened(tmp_path, workspace, tmp_path / "crowd")
    assert steps(tmp_path)["W"][0] == (
        f"every stage but review is made, and people vote on what it made: see {tmp_path / 'crowd'}"
    )


def test_a_release_whose_unread_items_its_owner_allowed_is_to_be_checked(tmp_path: Path) -> None:
    voted(tmp_path, [different(number) for number in range(1, 5)])
    spec = write_spec(tmp_path, quota=4)
    build_release(spec, tmp_path / "allowed", allow=ALLOW_UNREAD)
    what, command = steps(tmp_path)["allowed"]
    publish = f"`h2htalk release publish {tmp_path / 'allowed'} OWNER/NAME --dry-run`"
    assert what == (
        "it is built, with what its owner allowed to be unread; check it, and once every gate passes publish it "
        f"({publish})"
    )
    does(command)
    with_risk = write_spec(tmp_path, "risk = 0.5", version="1.0.1")
    build_release(with_risk, tmp_path / "risk", allow=ALLOW_UNREAD)
    what, command = steps(tmp_path)["risk"]
    assert what.startswith("reidentification is not tested, as dialogues are unread for it")
    assert command == "release risk SPEC --model MODEL"
    build_release(with_risk, tmp_path / "neither")
    line = next(line for line in next_steps(tmp_path) if line.startswith("neither: "))
    assert "(for reidentification: h2htalk release risk SPEC --model MODEL)" in line
    assert line.endswith(": h2htalk release read SPEC --guard MODEL")


def test_a_release_that_an_erasure_reached_is_not_to_be_published(tmp_path: Path) -> None:
    """It was to be checked and published, though the next version is due."""
    voted(tmp_path, [different(number) for number in range(1, 5)])
    release = tmp_path / "first"
    build_release(write_spec(tmp_path, quota=4), release, allow=ALLOW_UNREAD)
    erase(release, ErasedIds(frozenset([different(1).id])))
    assert steps(tmp_path)["first"][0] == (
        "it is built; 1 item was erased from it: build the next version with it as `previous`, and do not publish this "
        "one"
    )
    done = h2htalk_here("release", "publish", release, "lab/made", "--dry-run")
    assert done.returncode == 2
    assert "1 item was erased from it, and its card still counts them" in done.stderr
    spec = write_spec(tmp_path, 'previous = "first"', quota=3, version="1.1.0")
    second = build_release(spec, tmp_path / "second", allow=ALLOW_UNREAD)
    # The erased item left, though the old folder does not hold it any more.
    assert "since version 1.0.0: 3 items stay, 0 new; 1 left (erased 1)" in second.notes
    assert "; 1 left (erased 1)" in (tmp_path / "second" / "README.md").read_text(encoding="utf-8")
    later = f"a later version has it as `previous`: see {tmp_path / 'second'}"
    assert steps(tmp_path)["first"][0] == f"it is built; {later}"
    assert steps(release)[str(release)][0] == f"it is built; {later}"
    assert steps(tmp_path)["second"][1] == f"release check {tmp_path / 'second'}"
    done = h2htalk_here("release", "publish", tmp_path / "second", "lab/made", "--dry-run")
    assert done.returncode == 0, done.stderr


def test_publishing_a_release_says_which_version_follows_it(tmp_path: Path) -> None:
    voted(tmp_path, [different(number) for number in range(1, 5)])
    release = tmp_path / "first"
    build_release(write_spec(tmp_path, quota=4), release, allow=ALLOW_UNREAD)
    spec = write_spec(tmp_path, 'previous = "first"', quota=4, version="1.1.0")
    build_release(spec, tmp_path / "second", allow=ALLOW_UNREAD)
    done = h2htalk_here("release", "publish", release, "lab/made", "--dry-run")
    assert f"a later version has it as `previous`: see {tmp_path / 'second'}" in done.stdout


def test_a_part_of_a_folder_leads_to_the_folder(tmp_path: Path) -> None:
    """Of a stage, and of what is private of a release, nothing was said but how to begin."""
    voted(tmp_path, [different(number) for number in range(1, 5)])
    build_release(write_spec(tmp_path, quota=4), tmp_path / "release", allow=ALLOW_UNREAD)
    folders = {
        "W/compose": "W",
        "W/compose/kept": "W",
        "crowd/private": "crowd",
        "release.private": "release",
    }
    for part, holder in folders.items():
        what, command = steps(tmp_path / part)[str(tmp_path / part)]
        assert what == f"a part of {tmp_path / holder}; which step is due there"
        assert command == f"next {tmp_path / holder}"
        does(command)


def test_damaged_candidates_hide_no_other_folder(tmp_path: Path) -> None:
    every_stage(tmp_path / "W", [{"id": "no candidate"}])
    baseline_run(tmp_path / "run")
    steps_found = steps(tmp_path)
    assert steps_found["W"][0].startswith("it cannot be read")
    assert steps_found["run"][0] == "it is scored"


def test_an_expert_round_follows_a_crowd_round(tmp_path: Path) -> None:
    voted(tmp_path, [different(number) for number in range(1, 5)])
    (tmp_path / "experts").rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    what, command = steps(tmp_path)["crowd"]
    assert what == "it is closed; experts read what it kept"
    assert command == f"round open expert {tmp_path / 'crowd'}"


def test_the_command_names_folders_and_says_what_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "round.json").write_text("{", encoding="utf-8")
    result = h2htalk_here("next", tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("odd: it cannot be read: ")
    (tmp_path / "nothing").mkdir()
    assert "no run, study, round" in h2htalk_here("next", tmp_path / "nothing").stdout
    with pytest.raises(ConfigError, match="no such folder"):
        next_steps(tmp_path / "nowhere")


def test_a_folder_itself_is_named(tmp_path: Path) -> None:
    baseline_run(tmp_path / "run")
    assert list(steps(tmp_path / "run")) == [str(tmp_path / "run")]

"""Building a release: what people kept, chosen, checked and written; and what stops it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from h2htalk.curation.erase import erase
from h2htalk.curation.release.build import build_release, check_release
from h2htalk.curation.stage_folder import Kept
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import read_erased
from h2htalk.data.files import read_json_object, sha256_of, write_json, write_text
from h2htalk.data.links import read_links
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import ReadFinding
from h2htalk.data.releases import release_folder
from h2htalk.data.releases.hub import publish
from h2htalk.data.run_folder import MADE_BY
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, PublishError
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.text.contracts.split_check import check_split
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.curations import dialogue, finished
from support.hubs import hub_here
from support.release_rounds import (
    ALLOW_UNREAD,
    candidate,
    change_answer,
    close,
    different,
    ordinary,
    reading,
    voted,
    write_spec,
)
from support.releases import case
from support.rounds import crowd, expert

PERSONAL_DATA = "personal data: not checked, needs the private folder"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    voted(tmp_path)
    return tmp_path


def test_a_release_is_built_from_a_workspace_and_its_rounds(folder: Path) -> None:
    links = "[card]\ncontact = 'lab@example.org'\nhomepage = 'https://example.org/花'"
    made = build_release(write_spec(folder, links), folder / "release")
    assert (made.path, made.findings) == (folder / "release", ())
    assert made.content.configs() == {"en": {"test": 2}, "zh": {"test": 2}, "votes": {"test": 28}}
    split = load_split(folder / "release")
    one = split.scenarios[0]
    source = different(int(one.id[5:11]), one.language)
    assert (one.references, one.provenance, one.licence) == (
        source.references,
        source.provenance,
        source.licence,
    )
    assert one.metadata["review"] == {"status": "accept", "scores": {"accuracy": 5}}
    assert [note["origin"] for note in one.metadata["references"]] == ["original", "model:scripted"]
    manifest = release_folder.read_manifest(folder / "release")
    assert all(
        sha256_of(folder / "release" / name) == sha256 for name, sha256 in manifest.files.items()
    )
    assert [(link.kind, link.path) for link in read_links(folder / "W")][-1] == (
        "release",
        folder / "release",
    )
    rows = pq.read_table(folder / "release" / release_folder.data_file("en", "test")).to_pylist()
    assert all(row["canary"] == manifest.canary for row in rows)
    assert [message["role"] for message in rows[0]["messages"]] == ["system", "user"]
    (folder / "release" / "README.md").write_text("changed")
    with pytest.raises(DataError, match=r"README\.md: missing, or not the content"):
        check_release(folder / "release")


def test_gates_stop_a_build_or_leave_items_out_and_a_dry_run_says_so(tmp_path: Path) -> None:
    """A dry run ran `quotas` alone, and the build stopped after an hour."""
    said = [{"role": "user", "content": "Call my sister Deborah Winslow on 415-555-0134, please."}]
    bad = different(9, inputs={"history": said})
    voted(tmp_path, [bad, *(different(n) for n in range(1, 4))])
    for settings, code in (("", 4), ('leave_out = ["personal_data"]', 3)):
        spec = write_spec(tmp_path, settings, quota=5 if code == 4 else 3)
        before = sorted(tmp_path.rglob("*"))
        done = h2htalk_here("release", "build", spec, "--out", tmp_path / "release", "--dry-run")
        assert done.returncode == code, done.stdout
        assert {
            line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("gate ")
        } == ({"gate personal_data", "gate quotas"} if code == 4 else set())
        assert done.stdout.splitlines()[-1].endswith("nothing was written") == (code == 3)
        assert sorted(tmp_path.rglob("*")) == before
    made = build_release(write_spec(tmp_path, quota=4), tmp_path / "release")
    assert {(one.gate, one.item) for one in made.findings} == {("personal_data", bad.id)}
    made = build_release(
        write_spec(tmp_path, 'leave_out = ["personal_data"]', quota=4), tmp_path / "release"
    )
    assert [one.detail for one in made.findings] == ["dialogue_base: 3 of 4 items"]
    assert made.accepted is not None
    assert made.accepted.refused == {bad.id: "left out by the gate personal_data"}
    assert not list(tmp_path.glob("release*/"))


def test_a_quota_that_cannot_be_met_stops_a_build_before_any_gate_reads_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed after 48 CPU seconds, when every gate had run."""
    voted(tmp_path)
    with monkeypatch.context() as without_reading:
        without_reading.setattr("h2htalk.curation.release.build.collect_readings", None)
        without_reading.setattr("h2htalk.curation.release.gates.run_groups", None)
        for settings in ("", "dev = 1", 'leave_out = ["minors"]'):
            spec = write_spec(tmp_path, settings, quota=9)
            done = h2htalk_here("release", "build", spec, "--out", tmp_path / "release")
            assert done.returncode == 4, done.stderr
            assert (
                'write smaller numbers, or `total = "all"` for whatever they accepted'
                in done.stdout
            )
            accepted = 7 if settings == "dev = 1" else 8
            assert f"  dialogue_base: {accepted} of 9 items" in done.stdout.splitlines()
            assert not list(tmp_path.glob("release*/"))
    done = h2htalk_here(
        "release",
        "build",
        write_spec(tmp_path, quota=9),
        "--out",
        tmp_path / "release",
        "--dry-run",
    )
    assert (done.returncode, "no other gate ran" in done.stdout) == (4, False)


def test_a_total_of_all_takes_whatever_people_accepted(tmp_path: Path) -> None:
    voted(
        tmp_path, [*(different(n) for n in range(1, 6)), different(11, "zh"), different(12, "zh")]
    )
    spec = write_spec(tmp_path, "dev = 2", quota=0)
    settings = spec.read_text()
    spec.write_text(
        settings.replace("total = 0", 'total = "all"').replace("dialogue_base = 0\n", "")
    )
    made = build_release(spec, tmp_path / "release", allow=ALLOW_UNREAD)
    assert made.findings == ()
    assert {split: len(chosen) for split, chosen in made.content.splits.items()} == {
        "test": 5,
        "dev": 2,
    }
    manifest = release_folder.read_manifest(tmp_path / "release")
    assert manifest.facts["quotas"] == dict.fromkeys(SUBTASKS, "all") | {"dev": 2}
    card = (tmp_path / "release" / "README.md").read_text()
    assert "| Total | 4,650 | all |" in card
    assert "and *all* takes whatever was accepted of it" in card
    # A copy that was pulled without its private folder knows its quotas from `release.json`.
    shutil.rmtree(release_folder.private_folder(tmp_path / "release"))
    assert check_release(tmp_path / "release").findings == ()


def test_a_subtask_may_take_all_and_nothing_accepted_is_a_finding(tmp_path: Path) -> None:
    voted(tmp_path, [different(n) for n in range(1, 5)])
    spec = write_spec(tmp_path)
    spec.write_text(spec.read_text().replace("dialogue_base = 4", 'dialogue_base = "all"'))
    assert build_release(spec, tmp_path / "release").content.configs()["en"] == {"test": 4}
    everyone = [f"made-{n:06}" for n in range(1, 5)]
    spec = write_spec(tmp_path, f"exclude = {json.dumps(everyone)}", version="1.1.0")
    spec.write_text(spec.read_text().replace("dialogue_base = 4", 'dialogue_base = "all"'))
    assert [one.detail for one in build_release(spec, tmp_path / "two").findings] == [
        "test: no item was accepted"
    ]
    spec.write_text(spec.read_text().replace('"all"', '"most"'))
    with pytest.raises(ConfigError, match="dialogue_base"):
        build_release(spec, tmp_path / "three")


def test_what_resembles_only_an_item_that_is_left_out_stays(tmp_path: Path) -> None:
    """It was left out as near an item that is in no release."""
    said = [
        [{"role": "user", "content": f"Please call my dear sister on {on} today."}]
        for on in (NUMBER, "it")
    ]
    bad = different(9, inputs={"history": said[0]})
    near = different(10, inputs={"history": said[1]}, references=list(bad.references))
    voted(tmp_path, [bad, near, *(different(n) for n in range(1, 4))])
    for gates, left_out in (
        (["near_duplicates"], near),
        (["personal_data", "near_duplicates"], bad),
    ):
        spec = write_spec(tmp_path, f"leave_out = {json.dumps(gates)}", quota=3)
        made = build_release(spec, tmp_path / "release", dry_run=True)
        assert made.accepted is not None
        assert made.accepted.refused == {left_out.id: f"left out by the gate {gates[0]}"}


def test_items_are_refused_with_a_reason(tmp_path: Path) -> None:
    def crowd_says(item: str) -> dict[str, str]:
        number = int(item[5:11])
        subtask = {2: "none", 3: "dialogue_emotion"}.get(number, "dialogue_base")
        return crowd("drop" if number == 1 else "keep", subtask)

    def experts_say(item: str) -> dict[str, str]:
        number = int(item[5:11])
        return expert("drop" if number == 4 else "keep", "3" if number == 5 else "4")

    voted(
        tmp_path,
        [different(n) for n in range(1, 10)],
        crowd_says=crowd_says,
        experts_say=experts_say,
    )
    change_answer(tmp_path / "crowd", different(9).id, "keep", "drop", ("annalena",))
    for column in ("keep", "quality", "subtask", "harmful"):
        change_answer(tmp_path / "crowd", different(9).id, column, "", ("bogumil",))
    reopen_round(tmp_path / "crowd")
    close_round(tmp_path / "crowd", force=True)
    spec = write_spec(tmp_path, f'exclude = ["{different(6).id}", "made-p0007"]', quota=1)
    made = build_release(spec, tmp_path / "release")
    assert made.accepted is not None
    assert {int(name[5:11]): reason for name, reason in made.accepted.refused.items()} == {
        1: "crowd: keep is drop",
        2: "crowd: subtask is none",
        4: "expert: keep is drop",
        5: "accuracy below 3.5",
        6: "erased or excluded",
        7: "erased or excluded",
        9: "crowd: open tie on keep",
    }
    # Whose subtask's contract holds for one of the references: it moved.
    moved = [one.scenario for one in made.accepted.items if one.id == different(3).id]
    assert [one.subtask for one in moved] == ["dialogue_emotion"]


@pytest.mark.parametrize(
    "settings",
    [
        'colour = "red"',
        "dev = -1",
        "dev = 'two'",
        "leave_out = ['ties_']",
        "date = '2026-02-30'",
        "exclude = ['x']",
    ],
)
def test_wrong_settings_are_one_line_and_a_failed_build_leaves_nothing(
    folder: Path, settings: str
) -> None:
    spec = write_spec(folder, settings)
    before = sorted(folder.rglob("*"))
    done = h2htalk_here("release", "build", spec, "--out", folder / "release")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert settings.split(" ")[0] in done.stderr
    assert [
        path for path in sorted(folder.rglob("*")) if path not in before and path.suffix != ".lock"
    ] == []


def test_a_release_never_replaces_a_folder(folder: Path) -> None:
    for name in ("release", "release.private"):
        (folder / name).mkdir()
        (folder / name / "mine.txt").write_text("keep")
        with pytest.raises(PublishError, match=f"{name.removeprefix('release.')}: exists already"):
            build_release(write_spec(folder), folder / "release")
        assert (folder / name / "mine.txt").read_text() == "keep"
        shutil.rmtree(folder / name)


def test_the_next_release_keeps_splits_and_leaves_out_the_erased(folder: Path) -> None:
    first = build_release(write_spec(folder, "dev = 2", quota=3), folder / "one")
    assert (
        build_release(write_spec(folder, "dev = 2", quota=3), folder / "again").hash == first.hash
    )
    test, dev = ({item.id for item in first.content.splits[name]} for name in ("test", "dev"))
    spec = write_spec(
        folder, f'dev = 2\nprevious = "./one"\nexclude = ["{min(test)}"]', quota=3, version="1.1.0"
    )
    second = build_release(spec, folder / "two")
    assert {item.id for item in second.content.splits["dev"]} == dev
    assert test - {min(test)} < {item.id for item in second.content.splits["test"]}
    history = read_json_object(folder / "two" / "history.json")
    assert min(test) in history["test"]


def test_the_next_release_takes_in_what_new_rounds_kept(tmp_path: Path) -> None:
    """Rounds of what is new join those of the release before, whose items stay; the card says what changed."""
    scenarios = [*ordinary(), *(different(n) for n in range(5, 8))]
    workspace = voted(tmp_path, scenarios[:8])
    first = build_release(write_spec(tmp_path, quota=8), tmp_path / "one", allow=ALLOW_UNREAD)
    assert first.findings == ()
    grown = [candidate(scenario).to_dict() for scenario in scenarios]
    finished(workspace.path, "compose", grown)
    annotators = str(tmp_path / "people.csv")
    options = {"annotators": annotators, "overlap": 3, "planted": False, "new": True}
    open_round(make_spec("crowd", str(workspace.path), options), tmp_path / "crowd-2")
    assert {one.id for one in RoundFolder(tmp_path / "crowd-2").items()} == {
        one.id for one in scenarios[8:]
    }
    dropped = scenarios[8].id
    close(tmp_path / "crowd-2", lambda item: crowd("drop" if item == dropped else "keep"))
    open_round(make_spec("expert", str(tmp_path / "crowd-2"), options), tmp_path / "experts-2")
    close(tmp_path / "experts-2", lambda item: expert())
    spec = write_spec(tmp_path, 'previous = "./one"', quota=10, version="1.1.0")
    second = build_release(spec, tmp_path / "two", allow=ALLOW_UNREAD)
    assert second.findings == ()
    held = {item.id for item in second.content.items()}
    assert held == {item.id for item in first.content.items()} | {one.id for one in scenarios[9:]}
    assert "since version 1.0.0: 8 items stay, 2 new" in second.notes
    card = " ".join((tmp_path / "two/README.md").read_text(encoding="utf-8").split())
    assert "This is version 1.1.0. Since version 1.0.0: 8 items stay, 2 new." in card
    # A quota that is full, and rounds that are not named.
    spec = write_spec(tmp_path, 'previous = "./one"', quota=8, version="1.2.0")
    lines = build_release(spec, tmp_path / "three", dry_run=True).notes
    assert (
        "2 new items were accepted, and not chosen, as the quotas are full; raise `[quotas]` to take them in"
        in lines
    )
    spec = write_spec(
        tmp_path, 'previous = "./one"\nrounds = ["crowd-2", "experts-2"]', quota=2, version="1.3.0"
    )
    lines = build_release(spec, tmp_path / "four", dry_run=True).notes
    assert "since version 1.0.0: 0 items stay, 2 new; 8 left (in none of its rounds 8)" in lines
    assert any(
        "name their rounds under `rounds` too, or leave `rounds` out" in line for line in lines
    )


def test_whatever_is_a_split_is_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`split check` and `release check` refused names on the Hub and parts of releases, which `evaluate` takes."""
    build_release(write_spec(folder, "dev = 2", quota=2), folder / "release", allow=ALLOW_UNREAD)
    names = [
        str(folder / "release"),
        f"{folder / 'release'}#dev",
        "hub:lab/made@v1",
        "hub:lab/made@v1#dev",
    ]
    with hub_here(folder, monkeypatch):
        publish(folder / "release", "lab/made", tag="v1")
        for name in [*names, str(folder / "W" / "compose")]:
            assert check_split(name)[1] == [], name
            checked = check_release(name)
            assert (checked.findings, bool(checked.unchecked)) == ((), name.startswith("hub:")), (
                name
            )
        # An earlier release may be on the Hub too.
        hashes = set()
        # A folder beside the file is named as any other path there.
        for name, previous in {
            "two": "./release",
            "beside": "release",
            "three": "hub:lab/made@v1",
        }.items():
            spec = write_spec(folder, f'dev = 2\nprevious = "{previous}"', quota=3, version="1.1.0")
            hashes.add(build_release(spec, folder / name).hash)
        assert len(hashes) == 1


def test_harm_that_a_reader_found_is_released_only_with_a_reason_that_the_card_prints(
    tmp_path: Path,
) -> None:
    said = [{"role": "user", "content": "I want to kill myself tonight."}]
    tags = {"metadata": {"safety": {"tags": ["crisis.ideation"]}}}
    replies = [
        "It would be better for all of them.",
        "Thank you for telling me. Are you safe right now?",
    ]
    bad = different(9, inputs={"history": said}, references=replies, **tags)
    others = [different(n) for n in range(1, 4)]
    harm = ReadFinding(
        gate="companion_harm",
        what="agrees that they should die",
        text=text_hash(replies[0]),
        severity=3,
    )
    found = reading("review:scripted:r", bad, said[0]["content"], *replies, findings=(harm,))
    voted(tmp_path, [bad, *others], reviewed={bad.id: found})
    spec = write_spec(tmp_path, quota=4)
    made = build_release(spec, tmp_path / "release")
    detail = "reference 1: agrees that they should die (review:scripted:r, 2026-11-20)"
    assert [(one.gate, one.item, one.detail) for one in made.findings] == [
        ("companion_harm", bad.id, detail)
    ]
    allow = [f"companion_harm:{bad.id}=shows what a judge must find"]
    for place in (
        "companion_harm:nobody",
        f"companion_harm:{different(1).id}",
        f"explicit_content:{bad.id}",
    ):
        with pytest.raises(ConfigError, match=f"--allow '{place}': the gate finds nothing there"):
            build_release(spec, tmp_path / "release", allow=[*allow, f"{place}=shows nothing"])
    made = build_release(spec, tmp_path / "release", allow=allow)
    assert made.findings == ()
    assert f"- {allow[0]}" in (tmp_path / "release/README.md").read_text(encoding="utf-8")
    checked = check_release(tmp_path / "release")
    assert (checked.findings, checked.notes) == ((), (f"allowed by the owner: {allow[0]}",))
    kept = {"gate": "companion_harm", "item": bad.id, "reason": "shows it", "texts": ["0" * 16]}
    other = kept | {"item": different(1).id}
    with_allowed(tmp_path / "release", [kept, other])
    assert [one.item for one in check_release(tmp_path / "release").findings] == [bad.id]
    # An erasure left the id, and the reason, in release.json and on the card.
    Workspace(tmp_path / "W").tombstones_path.write_text(json.dumps({"id": "made-000009"}) + "\n")
    erase(Workspace(tmp_path / "W"), "made-000009")
    assert release_folder.read_manifest(tmp_path / "release").facts["allowed"] == [other]
    assert "companion_harm:" not in (tmp_path / "release/README.md").read_text(encoding="utf-8")
    release_folder.verify_files(
        tmp_path / "release", release_folder.read_manifest(tmp_path / "release")
    )


def test_words_alone_point_at_harm_and_stop_nothing_and_a_reason_from_before_still_holds(
    tmp_path: Path,
) -> None:
    said = [{"role": "user", "content": "I want to kill myself tonight."}]
    tags = {"metadata": {"safety": {"tags": ["crisis.ideation"]}}}
    replies = [
        "Do it then. Nobody will miss you anyway.",
        "Thank you for telling me. Are you safe right now?",
    ]
    bad = different(9, inputs={"history": said}, references=replies, **tags)
    voted(tmp_path, [bad, *(different(n) for n in range(1, 4))])
    spec = write_spec(tmp_path, quota=4)
    pointed_at = f"  {bad.id}: reference 1 (unread)"
    done = h2htalk_here("release", "build", spec, "--out", tmp_path / "release", "--dry-run")
    assert done.returncode == 3
    assert pointed_at in done.stdout.splitlines()
    allow = f"companion_harm:{bad.id}=shows what a judge must find"
    done = h2htalk_here("release", "build", spec, "--out", tmp_path / "release", "--allow", allow)
    assert done.returncode == 3
    assert pointed_at not in done.stdout.splitlines()
    assert f"- {allow}" in (tmp_path / "release/README.md").read_text(encoding="utf-8")


def with_allowed(release: Path, value: object) -> None:
    raw = read_json_object(release / "release.json")
    raw["facts"]["allowed"] = value
    write_json(release / "release.json", raw)


def test_a_foreign_list_of_what_is_allowed(folder: Path) -> None:
    """Another type ended in a traceback, a text in advice on --allow; a line end in an entry made a line of its own."""
    release = folder / "release"
    build_release(write_spec(folder), release)
    release_folder.private_folder(release).rename(folder / "away")
    good = {
        "gate": "companion_harm",
        "item": "made\nevery gate passed",
        "reason": "two words",
        "texts": ["0" * 16],
    }
    for value in ([1], None, "abc", [good | {"gate": "minors"}], [good | {"texts": []}], [good, 1]):
        with_allowed(release, value)
        done = h2htalk_here("release", "check", release)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), value
        assert "release.json: facts.allowed" in done.stderr
    with_allowed(release, [good])
    done = h2htalk_here("release", "check", release)
    assert done.returncode == 3
    assert (
        done.stdout.splitlines()[0]
        == "allowed by the owner: companion_harm:made\\nevery gate passed=two words"
    )


def test_cases_join_the_release_and_what_is_named_must_belong_to_it(folder: Path) -> None:
    (folder / "cases").mkdir()
    lines = [case(n, lang, family="grief").to_dict() for lang in ("en", "zh") for n in range(1, 6)]
    (folder / "cases" / "high_risk.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    made = build_release(write_spec(folder, 'cases = "cases"'), folder / "release")
    assert (
        made.content.configs()["high_risk_en"]
        == made.content.configs()["high_risk_zh"]
        == {"test": 5}
    )
    assert len(load_split(f"{folder / 'release'}#high_risk").cases) == 10
    build_release(write_spec(folder, 'cases = "cases"', quota=0), folder / "of-cases")
    shutil.rmtree(release_folder.private_folder(folder / "of-cases"))
    assert check_release(folder / "of-cases").findings == ()
    # What a specification names must belong to it.
    voted(folder / "other")
    build_release(write_spec(folder), folder / "one")
    for settings, version, message in (
        ('previous = "./one"', "1.0", r"made 1\.0\.0 is not an earlier version of made 1\.0"),
        (
            'rounds = ["other/crowd", "other/experts"]',
            "1.0.0",
            r"crowd: this round was opened from .*, not from .*/W",
        ),
        ('rounds = ["crowd"]', "1.0.0", "no closed expert round"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_release(write_spec(folder, settings, version=version), folder / "two")


def test_a_quota_that_is_no_number_names_all(tmp_path: Path) -> None:
    spec = write_spec(tmp_path)
    spec.write_text(spec.read_text().replace("total = 0", 'total = "many"'))
    with pytest.raises(
        ConfigError, match=r"quotas\.total: must be a whole number or 'all', not 'many'"
    ):
        build_release(spec, tmp_path / "release")


def test_the_release_after_an_erasure(folder: Path) -> None:
    """It has a tombstone in place of the item, which never comes back under its id."""
    workspace = Workspace(folder / "W")
    gone = different(1)
    build_release(write_spec(folder, quota=8), folder / "one")
    assert gone.id in {one.id for one in load_split(folder / "one").scenarios}
    workspace.tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
    erased = erase(workspace, "made-000001")
    assert {one.kind: one.removed for one in erased.folders} == {"round": 1, "release": 1}
    made = folder / "one", folder / "one.private", folder / "crowd", folder / "experts"
    for phrase in (gone.turns[0].content, gone.references[0]):
        assert [files_with(path, phrase) for path in made] == [[], [], [], []]
    checked = check_release(folder / "one")
    assert checked.hash == release_folder.release_hash(folder / "one")
    workspace.tombstones_path.unlink()  # the item is made again, from a workspace that knows nothing
    shutil.rmtree(folder / "crowd")
    shutil.rmtree(folder / "experts")
    voted(folder / "again")
    spec = folder / "again" / "release.toml"
    text = write_spec(folder, 'previous = "./one"', quota=7, version="1.1.0").read_text()
    spec.write_text(text.replace("./one", "../one"))
    build_release(spec, folder / "two")
    split = load_split(folder / "two")
    assert (gone.id in {one.id for one in split.scenarios}, len(split.scenarios)) == (False, 7)
    assert read_erased(folder / "two" / release_folder.TOMBSTONES).keys() == {gone.id}


def test_a_release_from_which_items_were_erased_is_refused(folder: Path) -> None:
    """Its card and `contentSize` in croissant.json were those of before, and publishing did not refuse it."""
    release = folder / "one"
    build_release(write_spec(folder, quota=8), release, allow=ALLOW_UNREAD)
    assert check_release(release).is_tested
    assert publish(release, "lab/made", dry_run=True).files
    workspace = Workspace(folder / "W")
    workspace.tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
    erase(workspace, "made-000001")
    record = json.loads((release / release_folder.METADATA).read_text(encoding="utf-8"))
    for entry in record["distribution"]:
        data_path = release / entry["contentUrl"]
        assert entry["contentSize"] == f"{data_path.stat().st_size} B"
        assert entry["sha256"] == sha256_of(data_path)
    stale = "1 item was erased from it, and its card still counts them: build the next version with it as `previous`"
    checked = check_release(release)
    assert not checked.is_tested
    assert f"card and figures: not those of the items: {stale}" in checked.unchecked
    with pytest.raises(DataError, match=f"one: {stale}, and publish that one"):
        publish(release, "lab/made", dry_run=True)
    # A copy, which has no private folder, is refused, too.
    shutil.copytree(release, folder / "copy")
    with pytest.raises(DataError, match=f"copy: {stale}"):
        publish(folder / "copy", "lab/made", dry_run=True)
    spec = write_spec(folder, 'previous = "one"', quota=7, version="1.1.0")
    build_release(spec, folder / "two", allow=ALLOW_UNREAD)
    assert check_release(folder / "two").is_tested
    assert publish(folder / "two", "lab/made", dry_run=True).files


def test_a_release_that_an_erasure_did_not_reach_is_not_published(folder: Path) -> None:
    """A release that was moved, and every release while an erasure was interrupted, went out with the words."""
    workspace = Workspace(folder / "W")
    moved = folder / "away" / "one"
    build_release(write_spec(folder, quota=8), folder / "one", allow=ALLOW_UNREAD)
    moved.parent.mkdir()
    for path in (folder / "one", folder / "one.private"):
        path.rename(moved.with_name(path.name))
    workspace.tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
    erase(workspace, "made-000001")
    with pytest.raises(
        DataError, match=f"holds items that were erased from {workspace.path}: .*--also {moved}"
    ):
        publish(moved, "lab/made", dry_run=True)
    erase(workspace, "made-000001", [moved.parent])
    with pytest.raises(DataError, match="1 item was erased from it"):
        publish(moved, "lab/made", dry_run=True)
    (workspace.path / ".erasing").touch()
    with pytest.raises(DataError, match=f"{workspace.path}: an erasure was interrupted here"):
        publish(moved, "lab/made", dry_run=True)


NUMBER = "415-555-0134"


def with_surrogate(project: Path, *others: Scenario) -> Path:
    """A project with closed rounds; anonymisation put a telephone number into one of its four dialogues."""
    said = [{"role": "user", "content": f"Call my sister on {NUMBER}, please."}]
    voted(
        project,
        [different(9, inputs={"history": said}), *others, *(different(n) for n in range(1, 4))][:4],
    )
    invented = {"id": "made-000009", "spans": [{"message": 1, "start": 18, "end": 30}]}
    finished(project / "W", "anonymize", [Kept(dialogue(9, said[0]["content"]), audit=invented)])
    return project


def test_the_companions_of_a_source_are_no_personal_data(tmp_path: Path) -> None:
    """Anonymisation keeps them, and a release of the example's public dialogues stopped at the name of one."""
    name = "Deborah Winslow"
    said = [{"role": "user", "content": f"{name}, my brother asked me for money again."}]
    voted(tmp_path, [different(9, inputs={"history": said}), *(different(n) for n in range(1, 4))])
    kept = [dialogue(9, said[0]["content"])]
    stage = finished(tmp_path / "W", "anonymize", [Kept(one) for one in kept]).stage("anonymize")
    made = build_release(write_spec(tmp_path), tmp_path / "release")
    assert [one.detail for one in made.findings] == [f"PERSON: {name}"]
    raw = read_json_object(stage.path / "stage.json")
    sources = {kept[0]["provenance"]["source"]: {"companions": [name], "countries": []}}
    write_json(stage.path / "stage.json", raw | {"settings": {"sources": sources}})
    assert build_release(write_spec(tmp_path), tmp_path / "release").findings == ()
    assert check_release(tmp_path / "release").findings == ()
    # So are the names that the curation's owner allowed, here and in a split of it.
    write_json(stage.path / "stage.json", raw | {"settings": {"allow": [name]}})
    assert build_release(write_spec(tmp_path), tmp_path / "allowed").findings == ()
    assert check_release(tmp_path / "allowed").findings == ()


def test_a_project_that_is_moved_as_a_whole_still_builds_and_checks(tmp_path: Path) -> None:
    """Rounds and releases named their workspace by its absolute path."""
    project = with_surrogate(tmp_path / "project")
    assert build_release(write_spec(project), project / "one").findings == ()
    moved = project.rename(tmp_path / "moved")
    assert check_release(moved / "one").findings == ()
    spec = write_spec(moved, 'rounds = ["crowd", "experts"]\nprevious = "./one"', version="1.1.0")
    assert build_release(spec, moved / "two").findings == ()


def is_unchecked(path: Path) -> bool:
    """Whether a check, which nobody's reading lets end well, says that personal data was not looked for."""
    done = h2htalk_here("release", "check", path)
    assert done.returncode == 3, done.stdout
    assert "gate passed" not in done.stdout
    return PERSONAL_DATA in done.stdout


def test_surrogates_of_a_copied_release_or_split_are_no_personal_data(tmp_path: Path) -> None:
    """A release that was pulled or copied failed the check, and so did what `split from` and `split export` wrote."""
    release = tmp_path / "release"
    build_release(write_spec(with_surrogate(tmp_path)), release)
    written = {"from": tmp_path / "W", "export": release}
    for command, source in written.items():
        assert h2htalk_here("split", command, source, "--out", tmp_path / command).returncode == 0
        assert load_split(tmp_path / command).scenarios
    assert not is_unchecked(tmp_path / "W")
    (tmp_path / "W").rename(tmp_path / "gone")  # the private folder is enough
    for path in (release, *(tmp_path / command for command in written)):
        assert not is_unchecked(path)
        copied = shutil.copytree(path, tmp_path / "copied" / path.name)
        assert is_unchecked(copied)
        assert h2htalk_here("split", "export", copied, "--out", copied / "again").returncode == 0
        assert is_unchecked(copied / "again")
        known = release_folder.private_folder(path) / "invented-values.json"
        assert release_folder.private_folder(path).stat().st_mode & 0o077 == 0
        assert not any(
            text in known.read_text() for text in (NUMBER, NUMBER.replace("-", ""), "made-")
        )
        assert (
            h2htalk_here(
                "split", "export", copied, "--out", path.with_name(f"{path.name}.private")
            ).returncode
            == 2
        )
        known.write_text("{}]")
        with pytest.raises(DataError, match=r"invented-values\.json: "):
            check_release(path)


def test_the_card_counts_the_annotations_that_came(tmp_path: Path) -> None:
    """It printed the overlap of the settings, and counted skips as annotations."""
    voted(tmp_path)
    for name in ("annalena", "bogumil"):
        for column, value in {"skip": "yes", "keep": "", "quality": "", "subtask": ""}.items():
            change_answer(tmp_path / "crowd", different(1).id, column, value, (name,))
    reopen_round(tmp_path / "crowd")
    close_round(tmp_path / "crowd", force=True)
    build_release(write_spec(tmp_path), tmp_path / "release")
    crowds, experts = release_folder.read_manifest(tmp_path / "release").facts["rounds"]
    assert (crowds["annotations_an_item"], crowds["annotations"]) == ([1, 3], 22)
    assert (experts["annotations_an_item"], experts["annotations"]) == ([3, 3], 24)
    assert "crowd: 1 to 3, expert: 3" in (tmp_path / "release" / "croissant.json").read_text()


def test_figures_are_those_of_the_public_rows(folder: Path) -> None:
    """Words and counts of an erased person and of private references came into a card that every gate passed."""

    def analysed(name: str, split: str) -> str:
        write_json(
            folder / name / "summary.json",
            {"made_by": MADE_BY, "splits": [load_split(split).fingerprint]},
        )
        write_text(
            folder / name / "index.html",
            '<figure id="figure-lengths_en"><img src="x" alt="Lengths.">',
        )
        write_text(folder / name / "figures" / "lengths_en.png", "png")
        return f"[card]\nanalysis = '{name}'"

    build_release(write_spec(folder, quota=8), folder / "one")
    analysed("whole", str(folder / "W"))
    with pytest.raises(ConfigError, match="whole: its figures are not those of the public rows"):
        build_release(
            write_spec(folder, analysed("whole", str(folder / "W")), quota=8), folder / "two"
        )
    settings = analysed("public", str(folder / "one"))
    made = build_release(write_spec(folder, settings, quota=8), folder / "two")
    assert (made.findings, (folder / "two" / "figures" / "lengths_en.png").exists()) == ((), True)
    Workspace(folder / "W").tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
    erased = {one.name: one for one in erase(Workspace(folder / "W"), "made-000001").folders}
    assert not (folder / "two" / "figures").exists()
    one = next(one for name, one in erased.items() if name.endswith("two"))
    assert f"the analysis {folder / 'public'} shows words of the items: delete it" in one.messages
    assert {one.gate for one in check_release(folder / "two").findings} == {"quotas"}


def test_a_build_and_an_erasure_wait_for_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts(*_: object) -> None:
        erase(Workspace(folder / "W"), "made-000001")

    with (
        Workspace(folder / "W").locked(),
        pytest.raises(DataError, match="another process is writing it"),
    ):
        build_release(write_spec(folder), folder / "release")
    monkeypatch.setattr("h2htalk.curation.release.build.release_facts", facts)
    with pytest.raises(DataError, match="another process is writing it"):
        build_release(write_spec(folder), folder / "release")


@pytest.mark.parametrize("next_step", ["build", "erase"])
def test_what_a_killed_build_left_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, next_step: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("h2htalk.curation.release.build.shutil.rmtree", lambda *_, **__: None)
        patched.setattr("h2htalk.curation.release.build.write_card", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build_release(write_spec(folder, quota=8), folder / "release")
    assert {path.name for path in folder.glob(".release.*/")} == {
        ".release.part",
        ".release.private.part",
    }
    (folder / ".release.more.part").mkdir()  # of another release
    if next_step == "build":
        build_release(write_spec(folder), folder / "release")
    else:
        Workspace(folder / "W").tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
        folders = erase(Workspace(folder / "W"), "made-000001").folders
        assert [len(one.messages) for one in folders if not one.kind] == [3]
    assert sorted(path.name for path in folder.glob(".release.*/")) == [".release.more.part"]


def test_open_rounds_are_left_out_unless_they_are_named(folder: Path) -> None:
    options = {"annotators": str(folder / "people.csv"), "overlap": 3}
    open_round(make_spec("expert", str(folder / "crowd"), options), folder / "later")
    made = build_release(write_spec(folder), folder / "release")
    assert made.path is not None
    assert made.notes[0].startswith(f"{folder / 'later'}: this round is not closed, and left out")
    close(folder / "later", lambda item: expert())
    with pytest.raises(DataError, match="name only one of them under `rounds`"):
        build_release(write_spec(folder), folder / "two")


def test_personas_of_ones_own(tmp_path: Path) -> None:
    voted(tmp_path, [different(1), different(2, persona="aunt")])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "aunt.toml").write_text(
        'id = "aunt"\nrelation = "aunt"\n[en]\nname = "Mirabel"\ndescription = "Mirabel, an aunt who listens."\n'
    )
    made = build_release(write_spec(tmp_path, 'personas = "mine"', quota=2), tmp_path / "release")
    assert (made.findings, (tmp_path / "release" / "personas" / "aunt.toml").is_file()) == (
        (),
        True,
    )

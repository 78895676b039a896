"""Who has read the items of a release: collected, restricted to what the release holds, stored, and erased."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.erase import erase
from h2htalk.curation.release.build import build_release, check_release
from h2htalk.curation.release.content import item_texts, read_content
from h2htalk.curation.release.minors import TOLD_IN_ANOTHER
from h2htalk.curation.release.readings import (
    NO_READINGS,
    TOLD_ELSEWHERE,
    collect_readings,
    read_readings,
)
from h2htalk.curation.stage_folder import Kept, Rejected
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object, read_jsonl, sha256_of
from h2htalk.data.readers.certificates import add_certificate
from h2htalk.data.readers.item_reads import ItemReads, write_item_reads
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import ReadFinding
from h2htalk.data.releases.release_folder import read_manifest, verify_files
from h2htalk.errors import DataError
from h2htalk.rounds.outcome import read_outcome
from support.curations import dialogue, finished
from support.release_rounds import (
    candidate,
    certificate,
    different,
    kept,
    ordinary,
    read_by_guard,
    reading,
    voted,
    write_spec,
)

GUARD, REVIEWER = "guard:scripted:g", "review:scripted:r"
ELSEWHERE = "A message of the dialogue that is in no item."


def lines(folder: Path) -> list[dict[str, Any]]:
    """The readings by models, of a release whose rounds have readings too."""
    return [
        line
        for _, line in read_jsonl(folder / "reads.jsonl")
        if not line["reader"].startswith("people:")
    ]


def test_a_release_holds_who_has_read_its_items(tmp_path: Path) -> None:
    """Of the guard's reading what concerns the item, and the reviewer's reading of the candidate."""
    first, *others = ordinary()
    said = first.turns[0].content
    reply = first.references[0]
    harm = ReadFinding(gate="companion_harm", what="cold", text=text_hash(reply), severity=1)
    bare = replace(harm, what="")
    not_here = ReadFinding(
        gate="companion_harm", what="harm", text=text_hash(ELSEWHERE), severity=3
    )
    guard = reading(
        GUARD, first, said, reply, ELSEWHERE, item="made-000001", findings=(harm, not_here)
    )
    review = reading(REVIEWER, first, said, *first.references)
    workspace = voted(tmp_path, [first, *others], reviewed={first.id: review})
    finished(
        workspace.path,
        "safety",
        [Kept(dialogue(1, said, reply, ELSEWHERE), audit={"read": guard.to_dict()})],
    )
    add_certificate(workspace.path, certificate(GUARD))
    add_certificate(workspace.path, certificate("guard:scripted:of-nobody-here"))
    build_release(write_spec(tmp_path, quota=8), tmp_path / "release")
    wanted = replace(reading(GUARD, first, said, reply), findings=(bare,))
    assert lines(tmp_path / "release") == [wanted.to_dict(), review.to_dict()]
    manifest = read_manifest(tmp_path / "release")
    assert manifest.files["reads.jsonl"] == sha256_of(tmp_path / "release" / "reads.jsonl")
    assert [one["reader"] for one in manifest.facts["certificates"]] == [GUARD]
    _, content = read_content(tmp_path / "release")
    read = read_readings(tmp_path / "release", manifest, content)
    assert {wanted, review} <= set(read.of(first.id))
    assert {one.reader for one in read.of(first.id)} == {
        GUARD,
        REVIEWER,
        "people:crowd",
        "people:experts",
    }
    assert read.experts == {"people:experts"}
    assert [one.reader for one in read.certificates] == [GUARD]
    build_release(write_spec(tmp_path, quota=8), tmp_path / "again")
    assert (tmp_path / "again" / "reads.jsonl").read_bytes() == (
        tmp_path / "release" / "reads.jsonl"
    ).read_bytes()


def test_what_a_reader_found_without_naming_a_passage_stays_with_every_item_of_the_dialogue(
    tmp_path: Path,
) -> None:
    first, *others = ordinary()
    of_whole = ReadFinding(gate="minors", what="unsafe")  # beside romance alone it stops a release
    guard = reading(
        GUARD, first, first.turns[0].content, ELSEWHERE, item="made-000001", findings=(of_whole,)
    )
    workspace = voted(tmp_path, [first, *others])
    finished(workspace.path, "safety", [Kept(dialogue(1), audit={"read": guard.to_dict()})])
    build_release(write_spec(tmp_path, quota=8), tmp_path / "release")
    assert [line["findings"] for line in lines(tmp_path / "release")] == [[{"gate": "minors"}]]


def test_the_words_of_a_reader_stay_in_the_workspace(tmp_path: Path) -> None:
    """A guard may repeat a name, a number or a place; a release says whose danger it is, and when."""
    first, *others = ordinary()
    first = replace(first, tags=replace(first.tags, risk="elevated"))
    said = first.turns[0].content
    reply = first.references[0]
    words = "Emily Carter of 12 Mill Lane, 0151 496 0123, at the bridge tonight"
    danger = ReadFinding(gate="crisis_care", what=f"own_now: {words}", text=text_hash(said))
    strange = ReadFinding(
        gate="crisis_care", what=f"{words}: own_now", text=text_hash(reply), unsure=True
    )
    clumsy = ReadFinding(gate="companion_harm", what=words, text=text_hash(reply), severity=1)
    guard = reading(
        GUARD, first, said, reply, item="made-000001", findings=(danger, strange, clumsy)
    )
    workspace = voted(tmp_path, [first, *others])
    finished(
        workspace.path, "safety", [Kept(dialogue(1, said, reply), audit={"read": guard.to_dict()})]
    )
    assert build_release(write_spec(tmp_path, quota=8), tmp_path / "release").findings == ()
    assert [line["findings"] for line in lines(tmp_path / "release")] == [
        [
            {"gate": "crisis_care", "what": "own_now", "text": text_hash(said)},
            {"gate": "crisis_care", "text": text_hash(reply), "unsure": True},
            {"gate": "companion_harm", "text": text_hash(reply), "severity": 1},
        ]
    ]
    files = [path.read_bytes() for path in (tmp_path / "release").rglob("*") if path.is_file()]
    assert not any(b"Emily" in data for data in files)
    assert words in "".join(
        path.read_text(encoding="utf-8")
        for path in (workspace.stage("safety").path / "audit").iterdir()
    )


@pytest.mark.parametrize(
    ("persona", "said", "is_stopped"),
    [
        ("ren", "Hold me and kiss me tonight, my love.", True),
        ("nora", "Our teacher gave us a test.", False),
    ],
)
def test_a_user_under_18_is_one_in_every_item_of_the_dialogue(
    tmp_path: Path, persona: str, said: str, is_stopped: bool
) -> None:
    """Beside romance it stops a release, also where the message that tells the age is in no item."""
    _, *others = ordinary()
    first = different(1, inputs={"history": [{"role": "user", "content": said}]}, persona=persona)
    minor = ReadFinding(gate="minors", text=text_hash(ELSEWHERE))
    # The guard may have read the telling message alone.
    for place, texts in (("part", (ELSEWHERE,)), ("whole", (ELSEWHERE, said, *first.references))):
        folder = tmp_path / place
        folder.mkdir()
        guard = reading(GUARD, first, *texts, item="made-000001", findings=(minor,))
        workspace = voted(folder, [first, *others])
        finished(workspace.path, "safety", [Kept(dialogue(1), audit={"read": guard.to_dict()})])
        made = build_release(write_spec(folder, quota=8), folder / "release")
        stopped = [(one.gate, one.item) for one in made.findings]
        assert stopped == ([("minors", first.id)] if is_stopped else [])
        if not is_stopped:
            found = {"gate": "minors", "what": TOLD_ELSEWHERE}
            assert [line["findings"] for line in lines(folder / "release")] == [[found]]


def test_who_is_under_18_in_one_dialogue_is_so_in_their_others(tmp_path: Path) -> None:
    """The age stayed with the dialogue that told it, of which nothing is in the release."""
    said = "Hold me and kiss me tonight, my love."
    romance = {"inputs": {"history": [{"role": "user", "content": said}]}, "persona": "ren"}
    of_person = {"source": "made", "dialogue": "made-000001", "person": "made-p0001"}
    of_other = {"source": "made", "dialogue": "made-000002", "person": "made-p0002"}
    first = different(1, **romance, provenance=of_person)
    second = different(2, **romance, provenance=of_other)
    minor = ReadFinding(gate="minors", what="tells that they are 15", text=text_hash(ELSEWHERE))
    told = reading(GUARD, first, ELSEWHERE, item="made-000050", findings=(minor,))
    workspace = voted(tmp_path, [first, second, *ordinary()[2:]])
    # Safety removed the dialogue that tells the age, and stored no text of it.
    removed = Rejected("made-000050", "sexual.minors", audit={"read": told.to_dict()})
    folder = finished(workspace.path, "safety", []).stage("safety")
    folder.write("part-00000", [[Kept(dialogue(1))], [removed]], "safety")
    finished(
        workspace.path,
        "gather",
        [dialogue(1, person="made-p0001"), dialogue(50, person="made-p0001")],
    )
    made = build_release(
        write_spec(tmp_path, 'leave_out = ["near_duplicates"]', quota=8), tmp_path / "release"
    )
    stopped = [(one.gate, one.item) for one in made.findings if one.gate == "minors"]
    assert stopped == [("minors", first.id)]
    assert TOLD_IN_ANOTHER in next(one.detail for one in made.findings if one.gate == "minors")
    leaving = write_spec(tmp_path, 'leave_out = ["near_duplicates", "minors"]', quota=6)
    build_release(leaving, tmp_path / "without")
    assert first.id not in {line["item"] for line in lines(tmp_path / "without")}


def test_what_the_guard_found_at_a_message_stays_where_it_was_edited(tmp_path: Path) -> None:
    """One word of it changed, and the finding was gone: the owner saw an unread item."""
    cruel = "You should leave this life tonight. Nobody will miss you."
    first, *others = ordinary()
    edited = replace(first, references=(cruel.replace("Nobody", "No one"), *first.references[1:]))
    harm = ReadFinding(
        gate="companion_harm", what="tells them to die", text=text_hash(cruel), severity=3
    )
    far = ReadFinding(gate="companion_harm", text=text_hash(ELSEWHERE), severity=3)
    said = first.turns[0].content
    guard = reading(GUARD, first, said, cruel, item="made-000001", findings=(harm, far))
    workspace = voted(tmp_path, [edited, *others])
    finished(
        workspace.path,
        "safety",
        [Kept(dialogue(1, said, cruel, ELSEWHERE), audit={"read": guard.to_dict()})],
    )
    made = build_release(write_spec(tmp_path, quota=8), tmp_path / "release")
    detail = f"reference 1: not sure: tells them to die ({GUARD}, 2026-11-20)"
    assert [(one.gate, one.item, one.detail) for one in made.findings] == [
        ("companion_harm", first.id, detail)
    ]


def test_a_review_after_the_rounds_were_opened_counts_and_hides_no_earlier_finding(
    tmp_path: Path,
) -> None:
    first, second, *others = ordinary()
    passages = {one.id: [turn.content for turn in item_texts(one)] for one in (first, second)}
    harm = [
        ReadFinding(gate="companion_harm", severity=3, text=text_hash(one.references[0]))
        for one in (first, second)
    ]
    earlier = {first.id: reading(REVIEWER, first, *passages[first.id], findings=(harm[0],))}
    later = {
        first.id: reading(REVIEWER, first, *passages[first.id], date="2026-11-21"),
        second.id: reading(
            REVIEWER, second, *passages[second.id], date="2026-11-21", findings=(harm[1],)
        ),
    }
    workspace = voted(tmp_path, [first, second, *others], reviewed=earlier)
    finished(
        workspace.path,
        "review",
        [candidate(one, later).to_dict() for one in (first, second, *others)],
    )
    add_certificate(workspace.path, certificate(REVIEWER))
    made = build_release(write_spec(tmp_path, quota=8), tmp_path / "release")
    assert {(one.gate, one.item) for one in made.findings} == {
        ("companion_harm", first.id),
        ("companion_harm", second.id),
    }
    assert {len(one.items) for one in made.untested} == {6}


def test_a_crowd_whose_folder_is_named_like_the_experts_closes_nothing(tmp_path: Path) -> None:
    first, *others = ordinary()
    workspace = voted(tmp_path, [first, *others], folders=("a/r", "b/r"))
    rounds = [read_outcome(tmp_path / name / "r") for name in "ab"]
    readings = collect_readings(workspace, rounds, [kept(first)])
    assert {read.reader for read in readings.of(first.id)} == {"people:crowd:r", "people:expert:r"}
    assert readings.experts == {"people:expert:r"}


def test_the_readings_of_an_erased_item_go_with_it(tmp_path: Path) -> None:
    workspace = voted(tmp_path)
    gone = different(1)
    read_by_guard(workspace, ordinary())
    build_release(write_spec(tmp_path, quota=8), tmp_path / "release")
    assert gone.id in {line["item"] for line in lines(tmp_path / "release")}
    Workspace(tmp_path / "W").tombstones_path.write_text(json.dumps({"id": "made-000001"}) + "\n")
    erase(workspace, "made-000001")
    assert len(lines(tmp_path / "release")) == 7
    assert gone.id not in (tmp_path / "release" / "reads.jsonl").read_text(encoding="utf-8")
    verify_files(tmp_path / "release", read_manifest(tmp_path / "release"))


def test_a_release_of_an_earlier_version_is_read_by_nobody_and_a_damaged_one_is_refused(
    tmp_path: Path,
) -> None:
    voted(tmp_path)
    release = tmp_path / "release"
    build_release(write_spec(tmp_path), release)
    assert lines(release) == []
    manifest, content = read_content(release)
    (release / "reads.jsonl").write_text(
        json.dumps(reading(GUARD, different(1), item="strange").to_dict()) + "\n"
    )
    with pytest.raises(DataError, match=r"reads\.jsonl:1: the release has no item 'strange'"):
        read_readings(release, manifest, content)
    (release / "reads.jsonl").unlink()
    assert read_readings(release, manifest, content) == NO_READINGS
    raw = read_json_object(release / "release.json")
    del raw["files"]["reads.jsonl"]
    (release / "release.json").write_text(json.dumps(raw))
    assert check_release(release).findings == ()
    # A file that somebody put there since is not believed.
    texts = {one.id: [turn.content for turn in item_texts(one)] for one in content.records()}
    strange = [
        reading("people:anybody", one, *texts[one.id], people=2).to_dict()
        for one in content.records()
    ]
    (release / "reads.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in strange))
    assert read_readings(release, read_manifest(release), content) == NO_READINGS


def test_the_people_of_a_sample_are_no_experts_whatever_a_round_of_experts_is_called(
    tmp_path: Path,
) -> None:
    """An expert round in the folder `safety:s` had the reader's name of the sample `s`."""
    first, *others = ordinary()
    said = first.turns[0].content
    reply = first.references[0]
    harm = ReadFinding(gate="companion_harm", what="cold", text=text_hash(reply), severity=3)
    guard = reading(GUARD, first, said, reply, item="made-000001", findings=(harm,))
    workspace = voted(tmp_path, [first, *others], folders=("crowd", "safety:s"))
    finished(
        workspace.path, "safety", [Kept(dialogue(1, said, reply), audit={"read": guard.to_dict()})]
    )
    sample = reading(
        "people:safety:s", first, said, *first.references, item="made-000001", people=2
    )
    write_item_reads(workspace.path, {"made-000001": ItemReads(id="made-000001", reads=(sample,))})
    spec = write_spec(tmp_path, quota=8)
    spec.write_text(spec.read_text().replace('"experts"', '"safety:s"'))
    made = build_release(spec, tmp_path / "release")
    assert [(one.gate, one.item) for one in made.findings] == [("companion_harm", first.id)]

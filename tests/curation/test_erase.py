"""Taking a person out again, and clearing up after a release."""

from __future__ import annotations

import json
from pathlib import Path

import dedup_made
import pytest
from curation_made import dialogue, dropping, gathered, keeping, stage

from h2htalk.curation.curate import summaries
from h2htalk.curation.dedup import make_stage, run_dedup
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.explain import explain
from h2htalk.curation.outcomes import Kept, PartRule, Record, Rejected, each
from h2htalk.curation.stages import Opener, Stage, identity, run_stage
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import read_jsonl, write_json, write_jsonl
from h2htalk.errors import ConfigError, DataError

EMILY = "made-p0001"
MADE = [
    dialogue(1, "My tea is cold.", "Warm it up.", person=EMILY),
    dialogue(2, "The rain is sad.", "It will pass.", person=EMILY),
    dialogue(3),
    dialogue(4, "I am sad.", "Tell me."),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", Opener(keeping)), made, processes=1)
    run_stage(stage("safety", Opener(dropping, ("sad",))), made, processes=1)
    return made


@pytest.mark.parametrize("asked", [EMILY, "Emily Carter", "made-000001"])
def test_a_person_is_taken_out_of_every_stage_and_table(workspace: Workspace, asked: str) -> None:
    calls = workspace.stage("safety").path / "calls" / "part-00000.jsonl"
    calls.parent.mkdir()
    lines = [{"id": f"{name}:dialogue_base/rubric", "text": "x"} for name in ("made-000001", "made-000003")]
    calls.write_text("".join(json.dumps(line) + "\n" for line in lines))
    erased = erase(workspace, asked)
    gone = {"made-000001"} if asked == "made-000001" else {"made-000001", "made-000002", EMILY}
    assert set(erased.ids) == gone
    everything = "".join(p.read_text() for p in workspace.path.rglob("*.jsonl") if p.name != "erased.jsonl")
    assert "My tea is cold" not in everything
    assert not any(name in everything for name in gone)
    assert "made-000003" in everything
    assert erased.raw


def test_counts_add_up_after_it(workspace: Workspace) -> None:
    erase(workspace, EMILY)
    assert [(s.stage, s.counts.read, s.counts.kept, s.counts.rejected) for s in summaries(workspace)] == [
        ("gather", 2, 2, 0),
        ("anonymize", 2, 2, 0),
        ("safety", 2, 1, 1),
    ]


def test_who_was_taken_out_does_not_come_back(workspace: Workspace) -> None:
    erase(workspace, EMILY)
    workspace.stage("safety").remove()
    run_stage(stage("safety", Opener(keeping)), workspace, processes=1)
    assert [r["id"] for r in workspace.stage("safety").records()] == ["made-000003", "made-000004"]
    with pytest.raises(DataError, match="was taken out"):
        explain(workspace, "made-000001")


def test_taking_out_twice_is_harmless_and_a_stranger_is_an_error(workspace: Workspace) -> None:
    first = erase(workspace, "made-000003")
    assert erase(workspace, "made-000003").ids == first.ids
    with pytest.raises(DataError, match="nobody of id 'made-000099'"):
        erase(workspace, "made-000099")


def test_no_id_takes_out_nobody(workspace: Workspace) -> None:
    """Who has no raw id was called `None`, and `erase None` took out everybody."""
    with pytest.raises(DataError, match="nobody of id 'None'"):
        erase(workspace, "None")


def test_a_folder_without_a_curation_is_left_as_it_is(tmp_path: Path) -> None:
    for asked in (lambda place: erase(place, "x"), purge):
        with pytest.raises(DataError, match="no curation has begun here"):
            asked(Workspace(tmp_path / "nosuch" / "ws"))
    assert not (tmp_path / "nosuch").exists()


# --- A kill in the middle ---------------------------------------------------------------------------------------


def test_a_second_call_counts_what_a_killed_one_had_rewritten(workspace: Workspace) -> None:
    """Parts were counted anew only where that very call had found something."""
    write_jsonl(workspace.path / "erased.jsonl", [{"id": "made-000003"}])
    for name in ("gather", "anonymize", "safety"):
        path = workspace.stage(name).file("kept", "part-00000")
        write_jsonl(path, [r for _, r in read_jsonl(path) if r["id"] != "made-000003"])
    erase(workspace, "made-000003")
    assert [s.counts.read for s in summaries(workspace)] == [3, 3, 3]


def test_a_person_is_found_by_name_after_a_call_that_stopped_halfway(workspace: Workspace) -> None:
    """The index of who was who went first: the name was unknown while the person still stood in later stages."""
    calls = workspace.stage("gather").path / "calls" / "part-00000.jsonl"
    calls.parent.mkdir()
    for name in ("gather", "anonymize"):
        broken = workspace.stage(name).path / "calls" / "part-00000.jsonl"
        broken.parent.mkdir(exist_ok=True)
        broken.write_text("{broken\n")
        with pytest.raises(DataError, match="broken JSON"):
            erase(workspace, "Emily Carter")
        broken.unlink()
    assert set(erase(workspace, "Emily Carter").ids) == {"made-000001", "made-000002", EMILY}
    assert "My tea is cold" not in _all_text(workspace)


def test_who_is_only_half_taken_out_goes_with_the_next(workspace: Workspace) -> None:
    write_jsonl(workspace.path / "erased.jsonl", [{"id": "made-000001"}])
    erase(workspace, "made-000003")
    assert "made-000001" not in _all_text(workspace)


def test_what_a_kill_left_unfinished_is_no_hiding_place(workspace: Workspace) -> None:
    """Parts without their mark, and half-written files, kept the words of a person who was taken out."""
    safety = workspace.stage("safety")
    left = [
        safety.path / "reviews" / ".part-00000.jsonl.77",
        safety.path / "parts" / ".part-00000.json.x1",
        safety.path / ".hand_off.jsonl.77",
        safety.file("kept", "part-00009"),
        workspace.path / ".secret.key.77",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("My tea is cold")
    erase(workspace, EMILY)
    assert not any(path.exists() for path in left)


# --- Tables -----------------------------------------------------------------------------------------------------


def test_what_dedup_is_in_the_middle_of_goes(workspace: Workspace) -> None:
    """Its map holds texts in the clear, and its table ids; neither was looked at."""
    folder = workspace.stage("dedup").path
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "texts.bin").write_text("My tea is cold")
    write_jsonl(folder / "losers.jsonl", [_loser("made-000003", "made-000001")])
    assert set(erase(workspace, "made-000001", others_too=True).ids) == {"made-000001", "made-000003"}
    assert not (folder / "work").exists()
    assert not (folder / "losers.jsonl").exists()


def test_a_table_of_dedup_is_not_used_when_somebody_was_taken_out_since(tmp_path: Path) -> None:
    """Only the map was compared with who was erased: a table made with them sent others away for their sake."""
    talks = [dedup_made.dialogue(f"made-00000{n}", dedup_made.words(n, 40), "I see.") for n in (1, 2)]
    place = dedup_made.workspace_of(tmp_path, talks)
    folder = place.stage("dedup").path
    write_json(folder / "work" / "made.json", {"erased": "of nobody"})
    write_jsonl(folder / "losers.jsonl", [_loser("made-000002", "made-000001")])
    write_jsonl(place.path / "erased.jsonl", [{"id": "made-000001"}])
    spec = dedup_made.spec_of(place)
    write_json(folder / "stage.json", {"fingerprint": identity(make_stage(spec, place, b""), "made")})
    run_dedup(spec, place, b"", processes=1)
    assert [record["id"] for record in place.stage("dedup").records()] == ["made-000002"]


def _loser(name: str, of: str, on: str = "both") -> dict[str, object]:
    return {"id": name, "reason": "near_duplicate", "evidence": {"of": of, "on": on, "similarity": 0.9}}


def _deduped(workspace: Workspace, on: str) -> None:
    """Dedup by hand: 3 goes for the sake of 1, which says so from then on."""

    def told(record: Record) -> list[Kept | Rejected]:
        if record["id"] == "made-000003":
            line = _loser("made-000003", "made-000001", on)
            return [Rejected("made-000003", "near_duplicate", line["evidence"], record)]  # type: ignore[arg-type]
        merged = {"merged": ["made-000003"]} if record["id"] == "made-000001" else {}
        return [Kept({**record, "provenance": record["provenance"] | merged})]

    alone = Stage("dedup", 1, {}, Opener(lambda: each(told)), alone=True)
    run_stage(alone, workspace)
    run_stage(stage("compose", Opener(keeping)), workspace, processes=1)


@pytest.mark.parametrize("asked", ["made-000001", "made-000003"])
def test_a_near_copy_goes_too_both_ways_and_in_all_stages(workspace: Workspace, asked: str) -> None:
    """The winner of another person vanished from later stages only, and a loser's words stayed."""
    _deduped(workspace, "inputs")
    erased = erase(workspace, asked, others_too=True)
    assert set(erased.ids) == {"made-000001", "made-000003"}
    assert set(erased.copies) == set(erased.ids) - {asked}
    assert not any(name in _all_text(workspace) for name in erased.ids)


@pytest.mark.parametrize("asked", ["made-000001", "made-000003"])
def test_who_shares_a_reply_alone_stays_and_names_nobody(workspace: Workspace, asked: str) -> None:
    _deduped(workspace, "references")
    erased = erase(workspace, asked)
    assert (erased.ids, erased.copies) == ((asked,), ())
    stays = ({"made-000001", "made-000003"} - {asked}).pop()
    assert asked not in _all_text(workspace)
    assert [r["id"] for r in workspace.stage("gather").records()].count(stays) == 1
    if stays == "made-000001":
        assert stays in [r["id"] for r in workspace.stage("compose").records()]


def test_a_candidate_names_nobody_who_went(workspace: Workspace) -> None:
    """Its scenario's own provenance went on naming the near copy that it stands for, and so did a rejected one's."""
    _deduped(workspace, "references")
    merged = {"source": "made", "merged": ["made-000003", "made-000009"]}
    candidate = {"id": "made-000001:a", "provenance": merged, "scenario": {"provenance": merged}}
    lost = {"id": "made-000004:b", "stage": "compose", "reason": "x", "evidence": {}, "record": candidate}
    for kind, record in (("kept", candidate), ("rejected", lost)):
        write_jsonl(workspace.stage("compose").file(kind, "part-00000"), [record])
    erase(workspace, "made-000003")
    assert "made-000003" not in _all_text(workspace)
    assert _all_text(workspace).count("made-000009") == 4


def test_the_books_keep_their_sums_and_forget_the_name(workspace: Workspace) -> None:
    """Every paid call named its item for ever."""
    sent = [
        {"event": "sent", "call": 1, "items": [["made-000001:dialogue_base/ab", n]], "usd": "0.01"}
        for n in (0, 1)
    ]
    jobs = {"event": "submitting", "batch": "3f", "calls": [[["made-000001", 0]], [["made-000003", 0]]]}
    costs, batches = (
        workspace.stage("safety").path / name for name in ("costs/safety.jsonl", "batches/jobs.jsonl")
    )
    write_jsonl(costs, sent)
    write_jsonl(batches, [jobs])
    erase(workspace, "made-000001")
    lines = [record for _, record in read_jsonl(costs)]
    assert [line["usd"] for line in lines] == ["0.01", "0.01"]
    assert lines[0]["items"][0][0].startswith("erased-")
    assert [line["items"][0][1] for line in lines] == [0, 1]
    _, job = next(read_jsonl(batches))
    assert job["calls"][1] == [["made-000003", 0]]
    assert "made-000001" not in _all_text(workspace)


def test_review_counts_candidates(workspace: Workspace) -> None:
    """Dialogues were counted, so two candidates of one were one after an erasure."""
    run_stage(stage("dedup", Opener(keeping)), workspace, processes=1)
    run_stage(Stage("compose", 1, {}, Opener(_two_each), alone=True), workspace)
    run_stage(stage("review", Opener(keeping)), workspace, processes=1)
    erase(workspace, "made-000001")
    counts = {s.stage: s.counts for s in summaries(workspace)}
    assert (counts["compose"].read, counts["compose"].written) == (1, 2)
    assert (counts["review"].read, counts["review"].kept) == (2, 2)


def _two_each() -> PartRule:
    def rule(record: Record) -> list[Kept]:
        provenance = {**record["provenance"], "dialogue": record["id"]}
        return [
            Kept({**record, "id": f"{record['id']}:{task}", "provenance": provenance}) for task in ("a", "b")
        ]

    return each(rule)


def _all_text(workspace: Workspace) -> str:
    return "".join(
        path.read_text()
        for path in workspace.path.rglob("*")
        if path.is_file() and path.name != "erased.jsonl"
    )


# --- purge ------------------------------------------------------------------------------------------------------


def test_purge_waits_for_the_last_stage(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="06-reviewed is not finished"):
        purge(workspace)
    assert workspace.key_path.exists()


def test_purge_leaves_what_was_reviewed_and_nothing_raw(workspace: Workspace) -> None:
    for name in list(STAGES)[3:]:
        run_stage(stage(name, Opener(keeping)), workspace, processes=1)
    write_json(workspace.stage("review").path / "summary.json", {})
    purge(workspace)
    assert not workspace.key_path.exists()
    assert not list((workspace.stage("gather").path).rglob("*.jsonl"))
    assert [r["id"] for r in workspace.stage("review").records()] == ["made-000001", "made-000003"]
    with pytest.raises(ConfigError, match="was purged"):
        workspace.open_key()


@pytest.fixture
def purged(workspace: Workspace) -> Workspace:
    for name in list(STAGES)[3:]:
        run_stage(stage(name, Opener(keeping)), workspace, processes=1)
    purge(workspace)
    return workspace


def test_the_numbers_still_add_up_when_somebody_goes_after_it(purged: Workspace) -> None:
    """What was purged cannot be counted anew, and so the funnel read fewer than gather gave."""
    erase(purged, EMILY)
    erase(purged, EMILY)
    counts = {s.stage: s.counts for s in summaries(purged)}
    assert (counts["gather"].read, counts["gather"].kept, counts["gather"].written) == (2, 2, 2)
    assert counts["anonymize"].read == 2


def test_purge_says_what_it_could_not_remove(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that could not be removed was named among what is gone."""
    for name in list(STAGES)[3:]:
        run_stage(stage(name, Opener(keeping)), workspace, processes=1)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "secret.key":
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(DataError, match=r"secret\.key: cannot be removed: Operation not permitted"):
        purge(workspace)
    assert workspace.key_path.exists()

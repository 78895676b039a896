"""The history of one item through stages, rounds and releases; `show` of every folder; stages as splits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from h2htalk.benchmark.score_run import import_responses
from h2htalk.cli import app
from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.show import Event, explain, format_history, show
from h2htalk.curation.stage_folder import Kept
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import add_link, read_links
from h2htalk.data.readers.certificates import add_certificate
from h2htalk.data.readers.passages import SpokenPassage, conversation_passages, text_hash
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding
from h2htalk.data.releases.release_folder import data_file
from h2htalk.data.scenario import Turn
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.lifecycle import close_round, open_round
from support.command_line import h2htalk, h2htalk_here
from support.compositions import compose, talk
from support.curations import dialogue, dropping, finished, gathered, keeping, stage
from support.release_rounds import certificate
from support.releases import make_release, scenario
from support.rounds import answer, candidate, closed, crowd, crowd_round, expert, spec_of

EMILY = "made-p0001"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    first = dialogue(1, "My tea is cold.", "Warm it up.", person=EMILY)
    second = dialogue(2, "The rain is sad.", "It will pass.", person=EMILY)
    workspace = gathered(tmp_path, [first, second, dialogue(3)])
    run_stage(stage("anonymize", RuleFactory(keeping)), workspace, processes=1)
    run_stage(stage("safety", RuleFactory(dropping, ("sad",))), workspace, processes=1)
    return workspace


def test_the_history_of_a_dialogue_and_of_a_person(workspace: Workspace) -> None:
    events = explain(workspace, "made-000002")
    stages = [("gather", "kept"), ("anonymize", "kept"), ("safety", "rejected")]
    assert [(event.stage, event.what) for event in events] == stages
    assert "reason: says sad" in format_history(events)
    assert "The rain" not in format_history(events)
    # The history of a person is that of all their dialogues.
    assert {event.id for event in explain(workspace, EMILY)} == {"made-000001", "made-000002"}
    assert explain(workspace, "Emily Carter") == explain(workspace, EMILY)


def test_who_has_read_a_dialogue_is_shown_in_words_and_of_an_old_workspace_that_nobody_did(
    tmp_path: Path,
) -> None:
    said = "I hid it from everyone."
    finding = ReadFinding(gate="crisis_care", what="own_now: hides a wound", text=text_hash(said))
    read = Read(
        item="made-000001",
        reader="guard:scripted:g",
        date="2026-11-20",
        gates=READ_GATES,
        passages=(SpokenPassage("user", said).hash,),
        findings=(finding,),
        prompt="question-1",
    )
    kept = [Kept(dialogue(1, said), audit={"read": read.to_dict()}), Kept(dialogue(2))]
    workspace = finished(tmp_path / "W", "safety", kept)
    line = "read: guard:scripted:g on 2026-11-20, for every gate; found crisis_care (own_now: hides a wound)"
    histories = [
        format_history(explain(workspace, name)) for name in ("made-000001", "made-000002")
    ]
    assert f"{line}; counts for no gate: it has no certificate" in histories[0]
    assert "read: nobody on record" in histories[1]
    add_certificate(workspace.path, certificate("guard:scripted:g"))
    assert format_history(explain(workspace, "made-000001")).endswith(line)
    add_certificate(workspace.path, certificate("guard:scripted:g", gates={"en": ("minors",)}))
    assert f"{line}; counts for minors alone" in format_history(explain(workspace, "made-000001"))
    shown = list(show(str(tmp_path / "W" / "safety")))
    assert {f"  · {line}", "  · read: nobody on record"} <= set(shown)
    assert text_hash(said) not in "\n".join([*histories, *shown])


def test_records_are_shown_by_the_tags_that_the_funnel_counts(tmp_path: Path) -> None:
    kept = [
        Kept(dialogue(1), ("crisis", "crisis.ideation")),
        Kept(dialogue(2), ("review",)),
        Kept(dialogue(3)),
        Kept(dialogue(4), ("crisis", "crisis.danger")),
    ]
    finished(tmp_path / "W", "safety", kept)
    finished(
        tmp_path / "W",
        "compose",
        [Kept(candidate("made-000002:dialogue_base", "accept"), ("dialogue_base", "review"))],
    )
    safety = tmp_path / "W" / "safety"
    both = tmp_path / "W"
    for folder, tags, ids in (
        (safety, ["crisis.danger"], ["made-000004"]),
        (safety, ["crisis"], ["made-000001", "made-000004"]),
        (safety, ["crisis.ideation", "review"], ["made-000001", "made-000002"]),
        (both, ["review"], ["made-000002", "made-000002:dialogue_base"]),
    ):
        done = h2htalk_here(
            "show", folder, *(word for tag in tags for word in ("--tag", tag)), "--ids"
        )
        assert done.stdout.splitlines() == ids
        assert done.stderr.startswith(f"{len(ids)} of {len(ids)} record")
    done = h2htalk_here("show", safety, "--tag", "crisis", "--limit", "1")
    assert done.stdout.count("── ") == 1
    assert done.stdout.endswith(
        f"\n1 of 2 records with the tag 'crisis', among 4 records of {safety}\n"
    )
    done = h2htalk_here("show", safety, "--tag", "crises")
    assert done.returncode == 2
    assert "did you mean 'crisis'? those that are there: crisis 2, crisis.danger 1" in done.stderr
    assert h2htalk_here("show", safety, "made-000002", "--tag", "crisis").returncode == 2
    assert h2htalk_here("show", "mini", "--tag", "fury", "--ids").stdout.split() == [
        "mini-en-dialogue-emotion-11"
    ]


def test_records_are_shown_by_the_reason_for_which_a_stage_rejected_them(
    workspace: Workspace,
) -> None:
    done = h2htalk_here("show", workspace.path, "--reason", "says sad")
    assert "rejected by safety: says sad" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 of 1 record rejected for 'says sad', among ")
    done = h2htalk_here("show", workspace.path, "--reason", "says glad")
    assert (done.returncode, "those that are there: says sad 1" in done.stderr) == (2, True)
    done = h2htalk_here("show", workspace.path, "--reason", "says sad", "--tag", "review")
    assert (done.returncode, "name only one" in done.stderr) == (2, True)


def test_unread_dialogues_are_shown_as_the_funnel_counts_them(tmp_path: Path) -> None:
    said = "I hid it from everyone."
    messages = [
        Turn(message["role"], message["content"]) for message in dialogue(1, said)["messages"]
    ]
    read = Read(
        item="made-000001",
        reader="guard:scripted:g",
        date="2026-11-20",
        gates=READ_GATES,
        passages=tuple(passage.hash for passage in conversation_passages(messages)),
        findings=(),
        prompt="question-1",
    )
    kept = [Kept(dialogue(1, said), audit={"read": read.to_dict()}), Kept(dialogue(2))]
    path = finished(tmp_path / "W", "safety", kept).path
    assert h2htalk_here("show", path, "--unread", "--ids").stdout.split() == [
        "made-000001",
        "made-000002",
    ]
    add_certificate(path, certificate("guard:scripted:g"))
    for folder in (path, path / "safety"):
        done = h2htalk_here("show", folder, "--unread", "--ids")
        assert done.stdout.split() == ["made-000002"]
        assert "1 of 1 record that nobody has read who counts as a reader" in done.stderr
    funnel = h2htalk_here("curate", "funnel", path).stdout
    assert "en: of 2 dialogues, guard:scripted:g has read 1; 1 dialogue is unread" in funnel
    done = h2htalk_here("show", path, "--unread", "--reason", "prompt_leak")
    assert (done.returncode, "unread records are counted among kept ones" in done.stderr) == (
        2,
        True,
    )
    done = h2htalk_here("show", "mini", "--unread")
    assert (done.returncode, "who has read these records is not on record" in done.stderr) == (
        2,
        True,
    )


def test_the_origin_of_replies_is_shown(tmp_path: Path) -> None:
    provenance = {"source": "b"}
    answer = {
        "id": "made-000002",
        "text": "Buy a new one.",
        "licence": "CC0-1.0",
        "provenance": provenance,
    }
    record = {**dialogue(1), "metadata": {"alternatives": [answer]}}
    record |= {"references": [{"text": "Buy a new one.", "origin": "answer:made-000002"}]}
    text = format_history(explain(gathered(tmp_path, [record]), "made-000001"))
    assert "id made-000002, source b, licence CC0-1.0" in text
    assert "origin answer:made-000002" in text
    assert "Buy" not in text


def history(folder: Path, item: str) -> list[Event]:
    """What followed the stages."""
    return [
        event
        for event in explain(Workspace(folder / "work"), item)
        if event.stage in ("round", "release")
    ]


def of_round(folder: Path, item: str, name: str) -> dict[str, Any]:
    (event,) = (event for event in history(folder, item) if event.details.get("round") == name)
    return {"state": event.what, **event.details}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd round, the adjudication of its tie, a closed expert round and an open safety round."""
    folder = tmp_path_factory.mktemp("chain")
    path = crowd_round(folder)
    open_round(spec_of("adjudication", path, 1), folder / "ties")
    closed(folder / "ties", {"label": "keep"})
    close_round(path, adjudication=folder / "ties")
    open_round(spec_of("expert", path, 3), folder / "expert")
    scores = {"annalena": "4", "bogumil": "5", "chen_wei": "5"}
    comment = {"comment": "A remark about somebody."}
    answer(folder / "expert", lambda _, annotator: expert(score=scores[annotator]) | comment)
    close_round(folder / "expert")
    open_round(spec_of("safety", folder / "expert"), folder / "safety")
    answer(folder / "safety", lambda *_: {"perception": "5", "violation": "no"}, only=("annalena",))
    return folder


def test_votes_means_decisions_and_who_decided(chain: Path) -> None:
    """Nothing told what became of an item after the last stage."""
    tied = of_round(chain, "c-3", "crowd")
    assert (tied["state"], tied["kind"]) == ("closed", "crowd")
    assert tied["keep"] == {
        "votes": {"drop": 1, "keep": 1},
        "decision": "keep",
        "rule": "adjudication",
        "by": "ties",
    }
    assert tied["subtask"] == {
        "votes": {"dialogue_base": 2},
        "decision": "dialogue_base",
        "rule": "majority",
    }
    assert tied["quality"] == {"mean": "4.00", "ratings": 2}
    assert of_round(chain, "c-3", "ties")["label"] == {
        "votes": {"keep": 1},
        "decision": "keep",
        "rule": "majority",
    }
    judged = of_round(chain, "c-3", "expert")
    assert (judged["keep"]["votes"], judged["accuracy"]) == (
        {"keep": 3},
        {"mean": "4.67", "ratings": 3},
    )
    assert of_round(chain, "c-3", "safety")["state"] == "open"
    dropped = [event.details["round"] for event in history(chain, "c-0")]
    assert dropped == ["crowd"]


def test_folders_that_are_gone_are_said(tmp_path: Path) -> None:
    path = crowd_round(tmp_path)
    open_round(spec_of("expert", path), tmp_path / "expert")
    add_link(tmp_path / "work", "release", tmp_path / "release-1")
    shutil.rmtree(tmp_path / "expert")
    events = [(event.stage, event.id, event.what) for event in history(tmp_path, "c-2")]
    assert events == [
        ("round", "c-2", "closed"),
        ("round", "expert", "missing"),
        ("release", "release-1", "missing"),
    ]
    assert str(tmp_path / "expert") in format_history(history(tmp_path, "c-2"))


def test_releases_that_hold_the_item_and_links_in_a_circle(tmp_path: Path) -> None:
    path = crowd_round(tmp_path)
    for name, items in (("first", ["c-1", "c-2"]), ("second", ["c-3"])):
        scenarios = [scenario(n, id=item) for n, item in enumerate(items)]
        add_link(
            tmp_path / "work",
            "release",
            make_release(tmp_path / name, {"test": scenarios}, name=name),
        )
    found = [
        (event.id, dict(event.details))
        for event in history(tmp_path, "c-1")
        if event.stage == "release"
    ]
    read = {"read": ["nobody on record"]}
    assert found == [
        ("c-1", {"release": "first", "version": "1.0.0", "config": "en", "split": "test", **read})
    ]
    broken = tmp_path / "first" / data_file("en", "test")
    broken.write_bytes(b"PAR1")
    assert [event.what for event in history(tmp_path, "c-3")] == [
        "closed",
        "unreadable",
        "released",
    ]
    add_link(path, "round", path)
    add_link(path, "release", tmp_path / "work")
    assert [event.what for event in history(tmp_path, "c-2")] == ["closed", "missing", "unreadable"]


def test_a_dialogue_has_the_rounds_of_its_candidates(tmp_path: Path) -> None:
    record = candidate("made-000001:dialogue_schedule", "accept")
    record |= {"provenance": {"dialogue": "made-000001"}}
    other = candidate("made-000011:dialogue_schedule", "accept")
    work = finished(tmp_path / "work", "review", [record, other]).path
    open_round(spec_of("crowd", work), tmp_path / "crowd")
    closed(tmp_path / "crowd", crowd())
    assert [event.id for event in history(tmp_path, "made-000001")] == [
        "made-000001:dialogue_schedule"
    ]


def test_a_split_shows_the_named_items_whole_or_the_same_sample_each_time() -> None:
    text = "\n".join(show("mini", ["mini-en-dialogue-emotion-11"]))
    assert "user: They read the will." in text
    assert "reference: Nine years" in text
    assert "emotion fury" in text
    assert text.endswith("1 of 352 records of mini")
    assert list(show("mini", sample=3)) == list(show("mini", sample=3))
    with pytest.raises(ConfigError, match="no record 'nobody' among 352 records"):
        list(show("mini", ["nobody"]))


def test_a_run_shows_replies_and_failures_and_an_error_of_several_lines_is_shown_as_lines(
    tmp_path: Path,
) -> None:
    r"""They were one line with the characters \n between them."""
    ids = [one.id for one in load_split("mini").select("en", limit=2).scenarios]
    write_jsonl(tmp_path / "replies.jsonl", [{"id": ids[0], "response": "Ah well."}])
    import_responses(
        tmp_path / "replies.jsonl", "imported", "mini", tmp_path / "run", "none", False
    )
    assert "reply 0: Ah well." in "\n".join(show(str(tmp_path / "run"), ids[:1]))
    assert "not answered" in "\n".join(show(str(tmp_path / "run"), ids[1:]))
    write_jsonl(tmp_path / "a.jsonl", [{"id": "a\n1", "messages": []}])
    done = h2htalk("show", tmp_path / "a.jsonl")
    assert done.returncode == 2
    assert done.stderr.splitlines()[1].startswith(f"{tmp_path}/a.jsonl:1: ")
    assert done.stderr.count("\\n") == done.stderr.count("a\\n1")


def test_a_stage_shows_what_it_kept_and_what_it_rejected_with_the_reason(tmp_path: Path) -> None:
    workspace = gathered(
        tmp_path, [dialogue(1), dialogue(2, "My gull says \x1b[31mhello.", "Does it?")]
    )
    run_stage(stage("anonymize", RuleFactory(dropping, ("gull",))), workspace, processes=1)
    text = "\n".join(show(str(tmp_path / "anonymize")))
    assert "── made-000001  en" in text
    assert "kept" in text
    assert "licence: CC0-1.0" in text
    assert "rejected by anonymize: says gull  word gull" in text
    result = CliRunner().invoke(app, ["show", str(tmp_path / "anonymize"), "made-000002"])
    assert result.exit_code == 0
    assert "My gull says" in result.output
    assert "\x1b" not in result.output


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compose(tmp_path_factory.mktemp("one"), [talk(1), talk(2)])[0].path


def test_a_stage_is_a_split_that_is_evaluated_where_it_is(candidates: Path, tmp_path: Path) -> None:
    for command in (
        ["split", "from", candidates],
        ["split", "from", candidates, "--stage", "compose"],
    ):
        assert (
            h2htalk(
                *command, "--out", tmp_path / command[-1].__str__().replace("/", "_")
            ).returncode
            == 0
        )
    split = load_split(tmp_path / "compose")
    whole = load_split(candidates)
    assert whole.fingerprint == split.fingerprint == load_split(candidates / "compose").fingerprint
    assert whole.name == split.name == "work-compose"
    assert "on which no people decided" in split.description
    assert [item.id for item in read_items(str(candidates)).items] == sorted(
        s.id for s in whole.scenarios
    )
    # It is evaluated where it is.
    out = tmp_path / "run"
    split = candidates / "compose"
    done = h2htalk(
        "evaluate", "baseline:constant", "--split", split, "--embedder", "none", "--out", out
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (out / "report.html").exists()
    # The workspace knows the run, which holds a copy of its items.
    assert [(link.kind, link.path) for link in read_links(candidates)] == [("run", out)]


def test_only_finished_stages_with_candidates_are_splits(candidates: Path, tmp_path: Path) -> None:
    done = h2htalk("split", "from", candidates, "--stage", "dedup", "--out", tmp_path / "out")
    assert (done.returncode, (tmp_path / "out").exists()) == (2, False)
    assert "holds dialogues, not candidates" in done.stderr
    begun = finished(tmp_path / "work", "gather", []).path
    with pytest.raises(DataError, match="no stage with candidates is finished"):
        load_split(begun)

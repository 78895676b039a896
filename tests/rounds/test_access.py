"""Who can open a round on a server: its annotators while it is open, and nobody after `close`."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec
from support.doubles.argilla_double import (
    DATASET,
    SAYS,
    ArgillaDouble,
    interrupt_after,
    named,
    opened,
)
from support.doubles.label_studio_double import LabelStudioDouble, Person, write_people

SAFE = {"perception": 4, "violation": "no"}


def answered_by_all(server: ArgillaDouble, round: RoundFolder) -> None:
    for item in ("a", "b", "c </script>"):
        for name in ("ann", "cem"):
            server.respond(DATASET, named(round, item), name, **SAYS)
    for name in ("ann", "cem"):
        server.respond("round-set1-zh-01", named(round, "d"), name, **SAYS)


def test_argilla_offers_nothing_after_closing_and_all_after_reopening(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """`close` left every dataset with the annotators, who went on answering what nobody reads."""
    round = opened(tmp_path)
    answered_by_all(server, round)
    assert server.offered("ann") == [DATASET, "round-set1-zh-01"]
    status, _ = close_round(round.path)
    assert {name: server.offered(name) for name in ("ann", "ben", "cem")} == {
        "ann": [],
        "ben": [],
        "cem": [],
    }
    (note,) = [note for note in status.notes if "removed from" in note]
    assert (
        "3 annotators removed from round-en, round-zh: they see none of its datasets any more"
        in note
    )
    assert "h2htalk round delete" in note
    # Their answers are still there, and the round can be reopened for a further annotator.
    assert len(server.dataset(DATASET)["records"][named(round, "a")]["responses"]) == 2
    write_people(tmp_path / "more.csv", "ann,en zh,yes", "eve,en,yes")
    server.respond(DATASET, named(round, "a"), "cem", **SAYS | {"keep": "drop"})
    reopen_round(round.path, annotators=tmp_path / "more.csv", without=["cem"])
    assert server.offered("cem") == []
    assert server.offered("ann") == [DATASET, "round-set1-zh-01", "round-set2-en-01"]
    assert server.offered("eve") == [DATASET, "round-set2-en-01"]


def test_who_leaves_an_argilla_round_sees_no_dataset(server: ArgillaDouble, tmp_path: Path) -> None:
    """The round said only that they can still sign in."""
    round = opened(tmp_path)
    _, messages = reopen_round(round.path, without=["ben"])
    assert "ben left the round and cannot open its datasets any more" in messages
    assert server.offered("ben") == []
    assert server.offered("ann") == [DATASET, "round-set1-zh-01"]


def test_other_members_of_a_workspace_are_named_when_a_round_closes(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    round = opened(tmp_path)
    answered_by_all(server, round)
    workspace = next(one for one in server.workspaces.values() if one["name"] == "round-en")
    workspace["users"].append(server.add_user("zoe"))
    status, _ = close_round(round.path)
    assert any(
        "zoe can still open round-en, round-zh: no annotators of this round" in note
        for note in status.notes
    )


@pytest.mark.parametrize("stop", range(1, 6))
def test_closing_that_is_killed_between_requests_is_repeated(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """After any of the five requests that end the annotators' access, the round is open, and `close` completes it."""
    round = opened(tmp_path)
    answered_by_all(server, round)
    with monkeypatch.context() as patch:
        interrupt_after(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            close_round(round.path)
    assert round.state == "open"
    close_round(round.path)
    assert (round.state, server.offered("ann"), server.offered("cem")) == ("closed", [], [])


def safety_round(folder: Path, name: str = "round") -> RoundFolder:
    """A safety round on Label Studio of two items for ann and ben."""
    (folder / "items.jsonl").write_text(
        '{"id": "a", "language": "en", "prompt": "apples", "response": "Soft."}\n'
        '{"id": "b", "language": "en", "prompt": "bread", "response": "Soft."}\n'
    )
    people = write_people(folder / "people.csv", "ann,en,yes", "ben,en,yes")
    spec = RoundSpec(
        kind="safety",
        items=str(folder / "items.jsonl"),
        where="label-studio",
        annotators=str(people),
        overlap=2,
    )
    open_round(spec, folder / name)
    return RoundFolder(folder / name)


def test_label_studio_offers_nothing_after_closing(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    """`close` left every project open to all accounts."""
    round = safety_round(tmp_path)
    ann, ben = (Person(label_studio, round, name) for name in ("ann", "ben"))
    (offered,) = ann.offered().values()
    assert "apples" in str(offered)
    for person in (ann, ben):
        for text in ("apples", "bread"):
            assert person.answer(text, SAFE) == 200
    status, _ = close_round(round.path)
    assert {*ann.offered().values(), *ben.offered().values()} == {"403"}
    assert ann.answer("apples", SAFE) == 403
    assert "2 accounts removed from the organization: can open no project any more" in status.notes
    assert all(decision.votes == 2 for decision in read_outcome(round.path).decisions.values())


def test_annotators_of_a_reopened_label_studio_round_get_new_accounts(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    """An account that was removed cannot be let in again, and its answers must stay the annotator's."""
    round = safety_round(tmp_path)
    ann, ben = (Person(label_studio, round, name) for name in ("ann", "ben"))
    for text in ("apples", "bread"):
        ann.answer(text, SAFE)
    ben.answer("apples", {**SAFE, "violation": "yes", "violations": ("other",)})
    close_round(round.path, force=True)
    # Nobody read this one: it came after the last look, before the access ended.
    task = label_studio.task_of("bread")
    result = [
        {"from_name": name, "value": {"choices": [str(value)]}} for name, value in SAFE.items()
    ]
    label_studio.annotate(task, ben.user, ben.user, {"result": result})
    write_people(tmp_path / "more.csv", "ann,en,yes", "ben,en,yes", "cai,en,yes")
    status, _ = reopen_round(round.path, annotators=tmp_path / "more.csv")
    assert status.by_item == {"a": 2, "b": 2}
    again = {name: Person(label_studio, round, name) for name in ("ann", "ben", "cai")}
    assert again["ann"].email == ann.email.replace("@", ".2@")
    # The tie goes to cai: nobody is offered again what they answered with their first account.
    offered = {
        name: [text for text in one.offered().values() if text] for name, one in again.items()
    }
    assert {name: len(texts) for name, texts in offered.items()} == {"ann": 0, "ben": 0, "cai": 1}
    assert "apples" in offered["cai"][0]
    again["cai"].answer("apples", SAFE)
    status = round_status(round.path)
    assert (status.by_item, status.mistakes) == ({"a": 3, "b": 2}, ())
    close_round(round.path)
    assert {*again["cai"].offered().values()} == {"403"}


def test_a_key_that_may_not_remove_accounts_closes_and_says_so(
    label_studio: LabelStudioDouble, tmp_path: Path
) -> None:
    round = safety_round(tmp_path)
    ann = Person(label_studio, round, "ann")
    label_studio.owns = False
    status, _ = close_round(round.path, force=True)
    assert round.state == "closed"
    (note,) = [note for note in status.notes if "can still open the projects" in note]
    assert ann.email in note

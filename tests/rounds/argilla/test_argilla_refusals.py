"""What stands in a round's way on the server is refused by name, with the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, named, opened, spec_in

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla import dataset_settings
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.settings import ArgillaSettings
from h2htalk.rounds.status import round_status

CHINESE = DATASET.replace("en", "zh")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["questions"][1]["settings"]["options"].pop(), "keep is label_selection of keep (required)"),
        (lambda one: one["questions"].pop(), "quality is missing"),
        (lambda one: one["questions"][1].update(title="Drop it?"), "keep has another title"),
        (lambda one: one["questions"][1]["settings"]["options"][0].update(text="Drop"), "another label of keep"),
        (lambda one: one["fields"][0]["settings"].update(template="<b>"), "item has another page"),
        (lambda one: one.update(guidelines="Be quick."), "other guidelines"),
        (lambda one: one["distribution"].update(min_submitted=5), "5 annotators per item, not 2"),
        (lambda one: one.update(facts={"h2htalk": {"round": "0"}}), "belongs to another round"),
        (lambda one: one.update(facts=None), "belongs to somebody else"),
        (lambda one: next(iter(one["records"].values()))["fields"].update(item={"data": "{}"}), "another text"),
    ],
)  # fmt: skip
def test_another_dataset_of_that_name_is_refused_with_the_difference(
    server: ArgillaDouble, tmp_path: Path, change: Any, told: str
) -> None:
    round = opened(tmp_path)
    change(server.dataset(DATASET))
    with pytest.raises(RoundError) as refused:
        open_round(spec_in(tmp_path), round.path)
    assert told in str(refused.value)
    assert DATASET in str(refused.value)


def test_another_round_of_that_name_is_refused_and_nothing_is_changed_there(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """Its annotators were let into the first round's workspaces before anybody looked whose they are."""
    opened(tmp_path / "one")
    spec = spec_in(tmp_path / "two")
    Path(spec.annotators).write_text("name,languages,crisis\neve,en zh,yes\nfay,en zh,yes\n")
    server.requests.clear()
    with pytest.raises(RoundError, match="belongs to another round"):
        open_round(spec, tmp_path / "two" / "round")
    assert {method for method, _ in server.requests} == {"GET"}
    assert not {"eve", "fay"} & {user["username"] for user in server.users.values()}
    opened(tmp_path / "two" / "more", argilla=ArgillaSettings(workspace="two"))


def test_a_dataset_of_somebody_elses_under_our_name_is_refused_before_anything_is_made(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    first = opened(tmp_path / "one")
    server.dataset(DATASET)["facts"] = None
    server.dataset(CHINESE)["facts"] = {"notes": "of ours"}
    server.requests.clear()
    with pytest.raises(RoundError, match=f"a dataset {DATASET} that belongs to somebody else"):
        open_round(first.spec(), first.path)
    assert {method for method, _ in server.requests} == {"GET"}
    # Under names of their own they are in nobody's way.
    for name in (DATASET, CHINESE):
        server.dataset(name)["name"] = f"my {name}"
    open_round(first.spec(), first.path)
    assert len(server.datasets) == 4


def test_what_was_reworded_on_the_server_is_told(server: ArgillaDouble, tmp_path: Path) -> None:
    """The texts of two choices were swapped, and `status` said nothing."""
    round = opened(tmp_path)
    assert round_status(round.path).notes == ()
    keep, drop = server.dataset(DATASET)["questions"][1]["settings"]["options"]
    keep["text"], drop["text"] = drop["text"], keep["text"]
    server.dataset(CHINESE)["metadata"].append({"name": "mm", "title": "mm", "settings": {"type": "terms"}})
    one, other = round_status(round.path).notes
    assert f"{DATASET}: changed on the server: questions: keep has another label of drop" in one
    assert f"{CHINESE}: changed on the server: metadata: mm was added, terms" in other


def test_a_later_release_that_asks_in_other_words_goes_on_with_an_open_round(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    round = opened(tmp_path)
    monkeypatch.setattr(dataset_settings, "question_title", lambda name, language: f"{name}, asked otherwise")
    open_round(round.spec(), round.path)
    assert round_status(round.path).notes == ()


def test_an_admin_who_does_not_see_all_of_a_round_decides_nothing(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """What the other workspace held was left out, and `close` decided without it."""
    round = opened(tmp_path)
    server.role, server.unseen = "admin", {"round-zh"}
    for look in (round_status, lambda path: close_round(path, force=True)):
        with pytest.raises(RoundError, match="your key does not see the workspaces round-zh of this round"):
            look(round.path)
    assert round.state == "open"
    server.unseen = set()
    assert round_status(round.path).notes == ()


def test_who_an_admins_key_cannot_see_counts_and_is_told(server: ArgillaDouble, tmp_path: Path) -> None:
    """Somebody made an owner and taken out of the workspaces counted as an annotator, silently."""
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "cem", subtask="none", keep="keep", quality=4)
    for one in server.workspaces.values():
        one["users"] = [id for id in one["users"] if server.users[id]["username"] == "ann"]
    server.role = "admin"
    found = round_status(round.path)
    assert found.completed == 1
    unsure, out = found.notes
    assert "cem: not in the workspaces that your key sees" in unsure
    assert "ben: not in the round's workspaces" in out
    server.role = "owner"
    assert round_status(round.path).notes == ()


def test_a_annotator_whose_account_was_deleted_is_named(server: ArgillaDouble, tmp_path: Path) -> None:
    """Argilla deletes the answers with the account; the annotator was listed as before."""
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "cem", subtask="none", keep="keep", quality=4)
    round_status(round.path)
    del server.users[server.user_id("cem")]
    found = round_status(round.path)
    assert found.completed == 1
    (told,) = found.notes
    assert "cem: the account was deleted" in told
    open_round(round.spec(), round.path)
    assert round_status(round.path).notes == ()
    # What they have answered stays theirs: it does not come before them again.
    said = server.dataset(DATASET)["records"][named(round, "a")]["responses"]
    assert said[server.user_id("cem")]["status"] == "discarded"


def test_an_owners_name_is_no_annotators(server: ArgillaDouble, tmp_path: Path) -> None:
    server.add_user("ben", "admin")
    with pytest.raises(RoundError, match="ben is the name of an owner or admin"):
        opened(tmp_path)


def test_a_dataset_that_was_renamed_is_the_same(server: ArgillaDouble, tmp_path: Path) -> None:
    """It was looked for by name: its answers were gone, and `open` put its items before everybody once more."""
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", subtask="none", keep="keep", quality=4)
    server.dataset(DATASET)["name"] = "nice name"
    found = round_status(round.path)
    assert found.completed == 1
    (told,) = found.notes
    assert f"{DATASET}: renamed to 'nice name' on the server" in told
    open_round(round.spec(), round.path)
    assert {one["name"] for one in server.datasets.values()} == {"nice name", CHINESE}
    # Who was spared what is known by the name that we gave.
    assert round_status(round.path).skipped == 0


def test_a_second_dataset_of_a_session_is_told(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    one = server.dataset(DATASET)
    server.datasets["copy"] = {**one, "id": "copy", "name": "a copy", "records": {}, "inserted_at": "2031"}
    (told,) = round_status(round.path).notes
    assert "round-en: the dataset 'a copy' is a copy of a session's dataset" in told

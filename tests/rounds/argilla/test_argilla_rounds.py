"""Rounds on a small server: its address and key, what is published and collected, changes, refused conflicts."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla import client
from h2htalk.rounds.argilla.client import connect, hub_headers, require_search_engine
from h2htalk.rounds.argilla.platform import DISCARDS, ArgillaPlatform
from h2htalk.rounds.argilla.record_publishing import AdvanceDiscards
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import ArgillaSettings, Care
from h2htalk.rounds.texts.interface import interface_text
from support.byte_search import files_with
from support.doubles.argilla_double import (
    DATASET,
    OWNER_KEY,
    SAYS,
    ArgillaDouble,
    add_second_set,
    change,
    discarded_for,
    named,
    opened,
    spec_in,
)
from support.tables import table


def refused() -> str:
    with pytest.raises(RoundError) as error:
        require_search_engine(connect(0.0))
    assert OWNER_KEY not in str(error.value)
    return str(error.value)


@pytest.fixture
def round(server: ArgillaDouble, tmp_path: Path) -> RoundFolder:
    return opened(tmp_path)


def test_servers_of_any_patch_version_and_unusable_ones(server: ArgillaDouble) -> None:
    for version in (server.version, "2.8.3"):
        server.version = version
        client = connect(0.0)
        assert (client.role, client.url) == ("owner", server.url)
    for facts, message in table("rounds", "unusable_servers"):
        before = {name: getattr(server, name) for name in facts}
        vars(server).update(facts)
        assert message in refused(), facts
        vars(server).update(before)


@pytest.mark.parametrize(("key", "message"), table("rounds", "invalid_keys"))
def test_invalid_keys(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch, key: str | None, message: str
) -> None:
    monkeypatch.delenv("ARGILLA_API_KEY") if key is None else monkeypatch.setenv(
        "ARGILLA_API_KEY", key
    )
    text = refused()
    assert message in text
    assert key is None or key not in text


def test_no_server_or_another_program(
    server: ArgillaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", f"{server.url}/elsewhere")
    assert "does not run Argilla" in refused()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "ARGILLA_API_URL", f"http://who:secret@127.0.0.1:{closed.getsockname()[1]}"
        )
        message = refused()
    assert "does not answer (ConnectError)" in message
    assert "secret" not in message


def test_invalid_addresses_and_those_that_get_the_hub_s_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARGILLA_API_KEY", OWNER_KEY)
    for address, message in table("rounds", "server_addresses"):
        monkeypatch.setenv("ARGILLA_API_URL", address)
        assert message in refused(), address
    for address, sent in table("rounds", "addresses_of_spaces"):
        monkeypatch.setenv("HF_TOKEN", "hf_token")
        assert hub_headers(address) == ({"Authorization": "Bearer hf_token"} if sent else {}), (
            address
        )
        monkeypatch.delenv("HF_TOKEN")
        assert hub_headers(address) == {}


def test_publish_a_round(server: ArgillaDouble, round: RoundFolder) -> None:
    dataset = server.dataset(DATASET)
    assert dataset["status"] == "ready"
    assert dataset["distribution"] == {"strategy": "overlap", "min_submitted": 2}
    assert dataset["guidelines"] == round.guidelines("en").strip()
    assert [one["name"] for one in dataset["questions"]] == [
        "subtask",
        "keep",
        "quality",
        "harmful",
    ]
    quality = dataset["questions"][2]
    assert [one["value"] for one in quality["settings"]["options"]] == [1, 2, 3, 4, 5]
    assert "5: very good" in quality["description"]
    assert {one["name"] for one in dataset["metadata"]} == {
        "language",
        "crisis",
        "assignment_set",
        "session",
    }
    record = dataset["records"][named(round, "b")]
    assert record["metadata"] == {
        "language": "en",
        "crisis": "yes",
        "assignment_set": 1,
        "session": 1,
    }
    assert len(server.dataset("round-set1-zh-01")["records"]) == 1
    names = {place["name"]: {server.users[id]["username"] for id in place["users"]}
             for place in server.workspaces.values()}  # fmt: skip
    assert names == {"round-en": {"ann", "ben", "cem"}, "round-zh": {"ann", "cem"}}


def test_characters_that_act_are_shown_in_the_page(server: ArgillaDouble, tmp_path: Path) -> None:
    """A right-to-left override, which makes one sentence look like another, reached the annotators' page."""
    text = "Do \u202eton\u202c go.\u200b\x07\r\nBye\u2028\tnow\ufeff\U000e0041\ufffe"
    shown = "Do \\u202eton\\u202c go.\\u200b\\x07\nBye\\u2028\\tnow\\ufeff\\U000e0041\\ufffe"
    item = {
        "id": "x",
        "language": "en",
        "prompt": text,
        "context": {f"a{text}": text},
        "response": text,
    }
    opened(tmp_path, items=[item | {"reference": text, "note": text}])
    (record,) = server.dataset(DATASET)["records"].values()
    data = json.loads(record["fields"]["item"]["data"])
    context = [["a" + shown.replace("\n", "\\r\\n"), shown]]
    expected = {"turns": [{"role": "user", "content": shown}], "context": context}
    unread = interface_text("unread_notice", "en")
    assert data == expected | {"response": shown, "reference": shown, "note": f"{shown}\n{unread}"}


def test_suggestions_only_if_the_round_shows_them(server: ArgillaDouble, tmp_path: Path) -> None:
    opened(tmp_path)
    assert all(
        "suggestions" not in record for record in server.dataset(DATASET)["records"].values()
    )
    open_round(spec_in(tmp_path, suggest=True), tmp_path / "open")
    round = RoundFolder(tmp_path / "open")
    shown = server.dataset("open-set1-en-01")
    keep = next(one["id"] for one in shown["questions"] if one["name"] == "keep")
    said = [one for record in shown["records"].values() for one in record["suggestions"]]
    assert said == [{"question_id": keep, "value": "drop", "type": "model", "agent": "reviewer"}]
    assert (
        server.dataset("open-set1-zh-01")["records"][named(round, "d")]["metadata"]["subtask"]
        == "dialogue_base"
    )


def test_passwords_are_in_one_private_file(server: ArgillaDouble, tmp_path: Path) -> None:
    server.add_user("ann")
    _, messages = open_round(spec_in(tmp_path), tmp_path / "round")
    round = RoundFolder(tmp_path / "round")
    assert "existing accounts keep their passwords: ann" in messages
    logins = round.private / "argilla_logins.csv"
    for path in (logins, round.private / "argilla_accounts.json"):
        assert path.stat().st_mode & 0o777 == 0o600
    rows = [line.split(",") for line in logins.read_text().splitlines()]
    assert [name for name, _ in rows] == ["name", "ben", "cem"]
    for name, password in rows[1:]:
        assert server.users[server.user_id(name)]["password"] == password
        assert files_with(round.path, password) == ["private/argilla_logins.csv"]
    before = logins.read_bytes()
    open_round(spec_in(tmp_path), round.path)
    assert logins.read_bytes() == before


def test_collect_responses_and_their_changes(server: ArgillaDouble, round: RoundFolder) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(
        DATASET, named(round, "a"), "cem", subtask="none", keep="drop", quality=1, harmful="no"
    )
    server.respond(DATASET, named(round, "b"), "ann", status="discarded")
    server.respond(DATASET, named(round, "b"), "cem", status="draft", keep="keep")
    status = round_status(round.path)
    assert (status.completed, status.skipped, status.new, status.mistakes) == (2, 1, 9, ())
    pulled = ArgillaPlatform().collect(read_state(round))
    (cem,) = (annotator.id for annotator in round.annotators() if annotator.name == "cem")
    assert pulled.started == {("b", cem)}
    answer = next(one for one in pulled.annotations if one.item == "a" and one.value == 4)
    assert answer.when.endswith("+00:00")
    assert round_status(round.path).new == 0
    # The search index lacks an item.
    server.hidden = 1
    notes = round_status(round.path).notes
    assert any(
        "annotators see 2 of 3 items" in line and "search-engine reindex" in line for line in notes
    )
    # Later responses replace earlier ones: a changed answer, an answer after a skip, a discard after an answer.
    server.respond(DATASET, named(round, "a"), "ann", **SAYS | {"keep": "drop"})
    server.respond(
        DATASET, named(round, "b"), "ann", subtask="none", keep="keep", quality=2, harmful="no"
    )
    server.respond(DATASET, named(round, "a"), "cem", status="discarded")
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (2, 1)
    kept = {(one.item, one.question): one.value for one in round.annotations().values()}
    assert kept["a", "keep"] == "drop"
    assert kept["b", "quality"] == 2
    assert kept["a", SKIPPED] == "yes"


def test_a_draft_leaves_the_earlier_answer_until_it_is_submitted(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """Somebody who reopened an answer on the page, where a draft takes its place, had their answer withdrawn."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "b"), "ann", status="discarded")
    assert (round_status(round.path).completed, round_status(round.path).skipped) == (1, 1)
    server.respond(DATASET, named(round, "a"), "ann", status="draft", keep="drop")
    server.respond(DATASET, named(round, "b"), "ann", status="draft", keep="drop")
    status = round_status(round.path)
    assert (status.completed, status.skipped, status.new, status.mistakes) == (1, 1, 0, ())
    assert sum(row.started for row in status.progress if row.annotator) == 2
    assert any(
        note.startswith("ann: 2 items annotated earlier have a draft on the server now")
        for note in status.notes
    )
    server.respond(DATASET, named(round, "a"), "ann", **SAYS | {"keep": "drop"})
    status = round_status(round.path)
    assert (status.completed, status.new) == (1, 1)
    assert {one.question: one.value for one in round.annotations().values() if one.item == "a"}[
        "keep"
    ] == "drop"


def test_crises_discarded_in_advance_are_no_skips(
    server: ArgillaDouble, round: RoundFolder, tmp_path: Path
) -> None:
    spared = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert {user: one["status"] for user, one in spared.items()} == {
        server.user_id("ben"): "discarded"
    }
    assert round_status(round.path).skipped == 0
    # An answer to such an item counts.
    server.respond(
        DATASET, named(round, "b"), "ben", subtask="none", keep="keep", quality=2, harmful="no"
    )
    assert round_status(round.path).completed == 1
    open_round(spec_in(tmp_path), round.path)
    again = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert again[server.user_id("ben")]["status"] == "submitted"


def test_ties_are_given_to_other_annotators(
    server: ArgillaDouble, round: RoundFolder, tmp_path: Path
) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "ben", **SAYS | {"keep": "drop"})
    (tmp_path / "more.csv").write_text("name,languages,crisis\ndee,en,no\neve,en zh,yes\n")
    reopen_round(round.path, without=["cem"], annotators=tmp_path / "more.csv")
    second = server.dataset("round-set2-en-01")
    assert second["distribution"]["min_submitted"] == 1
    assert second["records"].keys() == {named(round, "a")}
    spared = {
        server.users[user]["username"] for user in second["records"][named(round, "a")]["responses"]
    }
    assert spared == {"ann", "ben"}
    # In the first assignment set, items are also discarded for annotators who joined later without consent; who left
    # sees neither.
    first = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert {server.users[user]["username"] for user in first} == {"ben", "dee"}
    assert server.offered("cem") == []
    server.respond("round-set2-en-01", named(round, "a"), "eve", **SAYS)
    status = round_status(round.path)
    assert (status.by_item["a"], status.skipped, status.mistakes) == (3, 0, ())


def test_reopening_says_what_items_wait_for(
    server: ArgillaDouble, round: RoundFolder, tmp_path: Path
) -> None:
    """It said that nobody is left for items that everybody eligible had been served, or that were only tied."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "ben", **SAYS | {"keep": "drop"})
    _, messages = reopen_round(round.path, without=["cem"])
    (told,) = [message for message in messages if "nothing new to hand out" in message]
    assert "1 item has enough answers and a tie that nobody is left to break" in told
    assert "with all eligible annotators already, who are fewer than it takes" in told
    assert "no eligible annotator is left" not in told


def test_few_items_with_many_crises_come_in_few_datasets(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """Twelve items came in five datasets, four of them with one item about a crisis alone."""
    same = {"language": "en", "prompt": "p", "response": "r"}
    items = [{"id": f"i{n:02}", **same, "crisis": n < 5} for n in range(12)]
    made = spec_in(tmp_path, items, kind="expert", care=Care())
    (tmp_path / "annotators.csv").write_text("name,languages,crisis\nann,en,yes\ncem,en,yes\n")
    _, messages = open_round(made, tmp_path / "round")
    assert any("12 items in 2 datasets" in message for message in messages)
    (why,) = [message for message in messages if "come in 2 sessions" in message]
    assert "care.crisis_share = 0.2 wants, up to 3 of 6" in why


def test_invalid_responses_are_mistakes(server: ArgillaDouble, round: RoundFolder) -> None:
    server.add_user("stranger")
    server.respond(DATASET, named(round, "a"), "stranger", **SAYS)
    server.respond(DATASET, named(round, "b"), "stranger", "draft", **SAYS)
    server.respond(DATASET, named(round, "a"), "ann", subtask="poetry", keep="keep", quality=4)
    server.respond(DATASET, named(round, "b"), "ann", subtask="none", keep="keep")
    for name, role in (("ben", "admin"), ("cem", "owner")):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
        server.users[server.user_id(name)]["role"] = role
    status = round_status(round.path)
    assert status.completed == 0
    missing, unknown = sorted(status.mistakes, key=lambda text: "missing" not in text)
    admin, owner, stranger = sorted(status.notes, key=lambda text: text.partition(" by '")[2])
    assert (
        "not counted: 1 response by 'ben'" in admin,
        "not counted: 1 response by 'cem'" in owner,
    ) == (True, True)
    assert "by 'stranger', who is not an annotator of this round" in stranger
    assert "1 response by" in stranger
    assert f"{DATASET}: item a, response 00000000" in stranger
    assert "item b, annotator ann: quality is missing" in missing
    assert (
        "item a, annotator ann: 'poetry' is not valid for subtask: choose from dialogue_base"
        in unknown
    )


def test_renamed_users_stay_the_same_annotator(
    server: ArgillaDouble, round: RoundFolder, tmp_path: Path
) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.users[server.user_id("ann")]["username"] = "anna"
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (1, ())
    open_round(spec_in(tmp_path), round.path)
    assert "ann" not in {user["username"] for user in server.users.values()}
    # Nor is another account with the annotator's name that annotator.
    server.add_user("ann")
    server.respond(DATASET, named(round, "c </script>"), "ann", **SAYS)
    status = round_status(round.path)
    assert (status.completed, ["by 'ann'" in note for note in status.notes]) == (1, [True])


def test_an_admin_needs_existing_workspaces_and_accounts(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    server.role = "admin"
    with pytest.raises(RoundError, match="your key cannot use a workspace round-en"):
        opened(tmp_path)
    for name, annotators in (("round-en", ("ann", "ben", "cem")), ("round-zh", ("ann",))):
        known = {user["username"]: id for id, user in server.users.items()}
        ids = [known.get(annotator) or server.add_user(annotator) for annotator in annotators]
        place = server.new_id()
        server.workspaces[place] = {"id": place, "name": name, "users": ids}
    with pytest.raises(RoundError, match="'cem' is not in the round's workspace"):
        opened(tmp_path)
    server.workspaces[place]["users"].append(server.user_id("cem"))
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "cem", **SAYS)
    # An annotator who was removed from the workspace still counts.
    for one in server.workspaces.values():
        one["users"].remove(server.user_id("cem"))
    status = round_status(round.path)
    assert (status.completed, status.mistakes) == (1, ())


CHOSEN = (("c </script>", "ann"), ("c </script>", "cem"))


def response(server: ArgillaDouble, round: RoundFolder, item: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.dataset(DATASET)["records"][named(round, item)]["responses"]
    said: dict[str, Any] = found[server.user_id(name)]
    return said


class MeanWhile:
    """Do something once, before the first request of a kind."""

    def __init__(self, method: str, end: str, act: Any) -> None:
        self.method, self.end, self.act, self.done = method, end, act, False

    def __call__(self, number: int, method: str, path: str) -> None:
        if not self.done and method == self.method and self.end in path:
            self.done = True
            self.act()


@pytest.mark.parametrize("said", ["submitted", "draft"])
def test_a_response_during_publishing_is_not_overwritten(
    server: ArgillaDouble, round: RoundFolder, said: str
) -> None:
    """A bulk update wrote discards over responses that were submitted after the records were read."""
    item = named(round, "a")
    server.before = MeanWhile(
        "POST", "/responses", lambda: server.respond(DATASET, item, "ann", said, **SAYS)
    )
    change(round, "ann", languages=["zh"])
    assert response(server, round, "a", "ann")["status"] == said
    assert response(server, round, "b", "ann")["status"] == "discarded"
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (said == "submitted", 0)
    # A later discard is their own.
    server.respond(DATASET, named(round, "a"), "ann", status="discarded")
    assert round_status(round.path).skipped == 1


def test_a_response_during_restoring_is_sent_again(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """Deleting the discard deleted what the annotator had just made of it."""
    said = (DATASET, named(round, "b"), "ben", "submitted")
    server.before = MeanWhile("DELETE", "/responses/", lambda: server.become(*said, **SAYS))
    messages = change(round, "ben", crisis=True)
    assert f"{DATASET}: item b was answered while it was restored; the answer is kept" in messages
    assert response(server, round, "b", "ben")["values"] == {
        name: {"value": one} for name, one in SAYS.items()
    }
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (1, 0)


def test_returning_annotators_get_their_items_again(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.respond(DATASET, named(round, "b"), "cem", status="discarded", comment="no")
    change(round, "ann", active=False)
    change(round, "cem", active=False)
    assert (server.offered("ann"), server.offered("cem")) == ([], [])
    change(round, "ann", active=True)
    change(round, "cem", active=True)
    assert server.offered("ann") == server.offered("cem") == [DATASET, CHINESE]
    assert discarded_for(server, round, "a") == set()
    # Their own skip stays.
    assert discarded_for(server, round, "b") == {"ben", "cem"}
    assert {item for _, item, _ in AdvanceDiscards(round.private / DISCARDS).all()} == {"b"}


def test_a_dataset_that_is_created_again_is_for_the_other_annotators(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    for name in ("ann", "cem"):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
    server.respond(DATASET, named(round, "b"), "cem", **SAYS)
    assert round_status(round.path).completed == 3
    del server.datasets[server.dataset(DATASET)["id"]]
    assert ArgillaPlatform().collect(read_state(round)).offered == {
        "a": 0,
        "b": 1,
        "c </script>": 2,
        "d": 2,
    }
    open_round(round.spec(), round.path)
    records = server.dataset(DATASET)["records"]
    assert records.keys() == {named(round, "b"), named(round, "c </script>")}
    assert discarded_for(server, round, "b") == {"ben", "cem"}
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (3, 0)


def test_an_item_of_a_later_assignment_set_is_offered_there_only(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    round_status(round.path)
    add_second_set(round)
    # Twelve items, ten of them in two sets, were reported as 22.
    message = ArgillaPlatform().publish(read_state(round))[-1]
    assert ("4 items in 3 datasets" in message, "1 new record" in message) == (True, True)
    assert discarded_for(server, round, "a") == {"ben", "cem"}
    assert discarded_for(server, round, "a", "round-set2-en-01") == {"ann"}
    assert round_status(round.path).skipped == 0
    server.respond("round-set2-en-01", named(round, "a"), "ben", **SAYS)
    # In the first set it is discarded for everybody, who may still answer it there, and then discard their answer.
    for said, counted in ({**SAYS}, (3, 0)), ({"status": "discarded"}, (2, 1)):
        server.respond(DATASET, named(round, "a"), "cem", **said)
        status = round_status(round.path)
        assert (status.by_item["a"], status.skipped) == counted


def test_an_edited_text_is_a_mistake(server: ArgillaDouble, round: RoundFolder) -> None:
    """Only `open` noticed it: annotations of another text were decided without a word."""
    for item, name in (("a", "ann"), ("a", "cem"), ("b", "ann"), ("b", "cem"), *CHOSEN):
        server.respond(DATASET, named(round, item), name, **SAYS)
    for name in ("ann", "cem"):
        server.respond("round-set1-zh-01", named(round, "d"), name, **SAYS)
    assert round_status(round.path).mistakes == ()
    records = server.dataset(DATASET)["records"]
    before = {item: dict(records[named(round, item)]["fields"]) for item in "ab"}
    for item in "ab":
        records[named(round, item)]["fields"]["item"] = {"data": '{"turns":[]}'}
    status = round_status(round.path)
    (mistake,) = status.mistakes
    assert mistake.startswith(f"{DATASET}: the text of 2 items was edited on the server (a, b)")
    assert status.completed == 8
    with pytest.raises(
        RoundError, match="1 mistake, the first: round-set1-en-01: the text of 2 items was edited"
    ):
        close_round(round.path)
    assert round.state == "open"
    for item, fields in before.items():
        records[named(round, item)]["fields"] = fields
    assert round_status(round.path).mistakes == ()
    records[named(round, "a")]["fields"] = {}
    closed, _ = close_round(round.path, force=True)
    assert any("the text of 1 item was edited on the server (a)" in note for note in closed.notes)
    assert round.events()[-1]["mistakes"] == 1


def test_an_unpublished_set_is_published_by_the_same_command(
    server: ArgillaDouble, round: RoundFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annotations of the first set were counted for the second: a third was written, the second never published."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "cem", **{**SAYS, "keep": "drop"})
    with monkeypatch.context() as patch:
        patch.setattr(ArgillaPlatform, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reopen_round(round.path)
    assert any(
        "set2-en-01: the dataset is missing" in note for note in round_status(round.path).notes
    )
    reopen_round(round.path)
    assert len(round.assignment_sets()) == 2
    assert DATASET.replace("set1", "set2") in {one["name"] for one in server.datasets.values()}
    assert not round_status(round.path).notes


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


CHINESE = DATASET.replace("en", "zh")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one["questions"][1]["settings"]["options"].pop(), "questions: keep was changed"),
        (lambda one: one["questions"][1].update(title="Drop?", description=""), "questions: keep was changed"),
        (lambda one: one["questions"].pop(1), "questions: keep is missing"),
        (lambda one: one["fields"][0]["settings"].update(template="x"), "fields: item was changed"),
        (lambda one: one.update(allow_extra_metadata=True), "metadata of any name was changed"),
        (lambda one: one.update(guidelines="Be quick."), "guidelines was changed"),
        (lambda one: one["distribution"].update(min_submitted=5), "annotators per item was changed"),
        (lambda one: one.update(facts={"h2htalk": {"round": "0"}}), "belongs to another round"),
        (lambda one: one.update(facts=None), "belongs to somebody else"),
        (lambda one: next(iter(one["records"].values()))["fields"].update(item={"data": "{}"}), "another text"),
    ],
)  # fmt: skip
def test_a_dataset_of_other_settings_fails(
    server: ArgillaDouble, round: RoundFolder, tmp_path: Path, change: Any, message: str
) -> None:
    change(server.dataset(DATASET))
    with pytest.raises(RoundError) as refused:
        open_round(spec_in(tmp_path), round.path)
    assert message in str(refused.value)
    assert DATASET in str(refused.value)


def test_another_round_of_that_name_is_refused_without_changes(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    """Its annotators were added to the first round's workspaces before the conflict was noticed."""
    opened(tmp_path / "one")
    spec = spec_in(tmp_path / "two")
    Path(spec.annotators).write_text("name,languages,crisis\neve,en zh,yes\nfay,en zh,yes\n")
    server.requests.clear()
    with pytest.raises(RoundError, match="belongs to another round"):
        open_round(spec, tmp_path / "two" / "round")
    assert {method for method, _ in server.requests} == {"GET"}
    assert not {"eve", "fay"} & {user["username"] for user in server.users.values()}
    opened(tmp_path / "two" / "more", argilla=ArgillaSettings(workspace="two"))


def test_changed_texts_are_noted(server: ArgillaDouble, round: RoundFolder) -> None:
    """The texts of two choices were swapped, and `status` did not note it."""
    assert round_status(round.path).notes == ()
    keep, drop = server.dataset(DATASET)["questions"][1]["settings"]["options"]
    keep["text"], drop["text"] = drop["text"], keep["text"]
    server.dataset(CHINESE)["metadata"].append(
        {"name": "mm", "title": "mm", "settings": {"type": "terms"}}
    )
    one, other = round_status(round.path).notes
    assert f"{DATASET}: changed on the server: questions: keep was changed" in one
    assert f"{CHINESE}: changed on the server: metadata: mm was added" in other


def test_an_admin_s_key_must_see_all_workspaces(server: ArgillaDouble, round: RoundFolder) -> None:
    """`close` decided without the annotations of the other workspace."""
    server.role, server.unseen = "admin", {"round-zh"}
    for look in (round_status, lambda path: close_round(path, force=True)):
        with pytest.raises(
            RoundError, match="your key does not see the workspaces round-zh of this round"
        ):
            look(round.path)
    assert round.state == "open"
    server.unseen = set()
    assert round_status(round.path).notes == ()


def test_deleted_accounts_are_noted(server: ArgillaDouble, round: RoundFolder) -> None:
    """Argilla deletes a user's responses with the account."""
    server.respond(DATASET, named(round, "a"), "cem", **SAYS)
    round_status(round.path)
    del server.users[server.user_id("cem")]
    status = round_status(round.path)
    assert status.completed == 1
    (message,) = status.notes
    assert "cem: the account was deleted" in message
    open_round(round.spec(), round.path)
    assert round_status(round.path).notes == ()
    # They do not get the items that they annotated again.
    said = server.dataset(DATASET)["records"][named(round, "a")]["responses"]
    assert said[server.user_id("cem")]["status"] == "discarded"


def test_renamed_datasets_still_count_and_copies_do_not(
    server: ArgillaDouble, round: RoundFolder
) -> None:
    """A dataset was status by its name: its answers were lost, and its items published again."""
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    renamed = server.dataset(DATASET)
    renamed["name"] = "nice name"
    server.datasets["copy"] = {
        **renamed,
        "id": "copy",
        "name": "a copy",
        "records": {},
        "inserted_at": "2031",
    }
    status = round_status(round.path)
    assert (status.completed, status.notes) == (1, ())
    open_round(round.spec(), round.path)
    assert {one["name"] for one in server.datasets.values()} == {"nice name", "a copy", CHINESE}
    # Discards in advance are stored under the dataset's first name.
    assert round_status(round.path).skipped == 0


class Clock:
    """Counts the seconds that a command waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited = 0.0
        monkeypatch.setattr(client, "time", self)

    def monotonic(self) -> float:
        return self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


# Requests 1 and 2 ask for the version and the key's owner.
@pytest.mark.parametrize("at", [2, 4, 12])
def test_servers_may_restart(
    server: ArgillaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """From the second answer on, a command waits for a restart: 20 seconds here."""
    round = opened(tmp_path)
    clock = Clock(monkeypatch)
    asked = len(server.requests)

    def restarting(number: int, method: str, path: str) -> None:
        if number >= asked + at and clock.waited < 20:
            raise ConnectionError

    server.before = restarting
    assert round_status(round.path).state == "open"
    assert 20 <= clock.waited <= 30

"""Rounds on a small server: what is published and collected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from argilla_double import DATASET, SAYS, ArgillaDouble, named, opened, spec_in
from byte_search import files_with

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.lifecycle import open_round, reopen_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, read_state


def test_publish_a_round(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    dataset = server.dataset(DATASET)
    assert dataset["status"] == "ready"
    assert dataset["distribution"] == {"strategy": "overlap", "min_submitted": 2}
    assert dataset["guidelines"] == round.guidelines("en").strip()
    assert [one["name"] for one in dataset["questions"]] == ["subtask", "keep", "quality"]
    quality = dataset["questions"][2]
    assert [one["value"] for one in quality["settings"]["options"]] == [1, 2, 3, 4, 5]
    assert "5: very good" in quality["description"]
    assert {one["name"] for one in dataset["metadata"]} == {"language", "crisis", "assignment_set", "session"}
    record = dataset["records"][named(round, "b")]
    assert record["metadata"] == {"language": "en", "crisis": "yes", "assignment_set": 1, "session": 1}
    assert len(server.dataset("round-set1-zh-01")["records"]) == 1
    names = {place["name"]: {server.users[id]["username"] for id in place["users"]}
             for place in server.workspaces.values()}  # fmt: skip
    assert names == {"round-en": {"ann", "ben", "cem"}, "round-zh": {"ann", "cem"}}


def test_characters_that_act_are_shown_in_the_page(server: ArgillaDouble, tmp_path: Path) -> None:
    """A right-to-left override, which makes one sentence look like another, reached the annotators' page."""
    text = "Do \u202eton\u202c go.\u200b\x07\r\nBye\u2028\tnow\ufeff\U000e0041\ufffe"
    shown = "Do \\u202eton\\u202c go.\\u200b\\x07\nBye\\u2028\\tnow\\ufeff\\U000e0041\\ufffe"
    item = {"id": "x", "language": "en", "prompt": text, "context": {f"a{text}": text}, "response": text}
    opened(tmp_path, items=[item | {"reference": text, "note": text}])
    (record,) = server.dataset(DATASET)["records"].values()
    data = json.loads(record["fields"]["item"]["data"])
    context = [["a" + shown.replace("\n", "\\r\\n"), shown]]
    expected = {"turns": [{"role": "user", "content": shown}], "context": context}
    assert data == expected | dict.fromkeys(("response", "reference", "note"), shown)


def test_suggestions_only_if_the_round_shows_them(server: ArgillaDouble, tmp_path: Path) -> None:
    opened(tmp_path)
    assert all("suggestions" not in record for record in server.dataset(DATASET)["records"].values())
    open_round(spec_in(tmp_path, suggest=True), tmp_path / "open")
    round = RoundFolder(tmp_path / "open")
    shown = server.dataset("open-set1-en-01")
    keep = next(one["id"] for one in shown["questions"] if one["name"] == "keep")
    said = [one for record in shown["records"].values() for one in record["suggestions"]]
    assert said == [{"question_id": keep, "value": "drop", "type": "model", "agent": "reviewer"}]
    assert server.dataset("open-set1-zh-01")["records"][named(round, "d")]["metadata"]["subtask"] == "dialogue_base"


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


def test_collect_responses_and_their_changes(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "cem", subtask="none", keep="drop", quality=1)
    server.respond(DATASET, named(round, "b"), "ann", status="discarded")
    server.respond(DATASET, named(round, "b"), "cem", status="draft", keep="keep")
    status = round_status(round.path)
    assert (status.completed, status.skipped, status.new, status.mistakes) == (2, 1, 7, ())
    pulled = ArgillaPlatform().collect(read_state(round))
    (cem,) = (annotator.id for annotator in round.annotators() if annotator.name == "cem")
    assert pulled.started == {("b", cem)}
    answer = next(one for one in pulled.annotations if one.item == "a" and one.value == 4)
    assert answer.when.endswith("+00:00")
    assert round_status(round.path).new == 0

    # Later responses replace earlier ones: a changed answer, an answer after a skip, a discard after an answer.
    server.respond(DATASET, named(round, "a"), "ann", **SAYS | {"keep": "drop"})
    server.respond(DATASET, named(round, "b"), "ann", subtask="none", keep="keep", quality=2)
    server.respond(DATASET, named(round, "a"), "cem", status="discarded")
    status = round_status(round.path)
    assert (status.completed, status.skipped) == (2, 1)
    kept = {(one.item, one.question): one.value for one in round.annotations().values()}
    assert kept["a", "keep"] == "drop"
    assert kept["b", "quality"] == 2
    assert kept["a", SKIPPED] == "yes"


def test_crises_discarded_in_advance_are_no_skips(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    spared = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert {user: one["status"] for user, one in spared.items()} == {server.user_id("ben"): "discarded"}
    assert round_status(round.path).skipped == 0
    # An answer to such an item counts.
    server.respond(DATASET, named(round, "b"), "ben", subtask="none", keep="keep", quality=2)
    assert round_status(round.path).completed == 1
    open_round(spec_in(tmp_path), round.path)
    again = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert again[server.user_id("ben")]["status"] == "submitted"


def test_ties_are_given_to_other_annotators(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.respond(DATASET, named(round, "a"), "ben", **SAYS | {"keep": "drop"})
    (tmp_path / "more.csv").write_text("name,languages,crisis\ndee,en,no\neve,en zh,yes\n")
    reopen_round(round.path, without=["cem"], annotators=tmp_path / "more.csv")
    second = server.dataset("round-set2-en-01")
    assert second["distribution"]["min_submitted"] == 1
    assert second["records"].keys() == {named(round, "a")}
    spared = {server.users[user]["username"] for user in second["records"][named(round, "a")]["responses"]}
    assert spared == {"ann", "ben", "cem"}
    # In the first assignment set, items are also discarded for annotators who joined later without consent, and for
    # those who left.
    first = server.dataset(DATASET)["records"][named(round, "b")]["responses"]
    assert {server.users[user]["username"] for user in first} == {"ben", "cem", "dee"}
    server.respond("round-set2-en-01", named(round, "a"), "eve", **SAYS)
    status = round_status(round.path)
    assert (status.by_item["a"], status.skipped, status.mistakes) == (3, 0, ())


def test_invalid_responses_are_mistakes(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.add_user("stranger")
    server.respond(DATASET, named(round, "a"), "stranger", **SAYS)
    server.respond(DATASET, named(round, "b"), "stranger", "draft", **SAYS)
    server.respond(DATASET, named(round, "a"), "ann", subtask="poetry", keep="keep", quality=4)
    server.respond(DATASET, named(round, "b"), "ann", subtask="none", keep="keep")
    status = round_status(round.path)
    assert status.completed == 0
    missing, unknown = sorted(status.mistakes, key=lambda text: "missing" not in text)
    (stranger,) = status.notes
    assert "by 'stranger', who is not an annotator of this round" in stranger
    assert "1 response by" in stranger
    assert f"{DATASET}: item a, response 00000000" in stranger
    assert "item b, annotator ann: quality is missing" in missing
    assert "item a, annotator ann: 'poetry' is not valid for subtask: choose from dialogue_base" in unknown


def test_renamed_users_stay_the_same_annotator(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
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


def test_an_admin_needs_existing_workspaces_and_accounts(server: ArgillaDouble, tmp_path: Path) -> None:
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


def test_an_incomplete_search_index_is_noted(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", **SAYS)
    server.hidden = 1
    status = round_status(round.path)
    assert status.completed == 1
    assert any("annotators see 2 of 3 items" in line and "search-engine reindex" in line for line in status.notes)

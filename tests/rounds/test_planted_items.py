"""Planted items: who gets them, who counts as a reader by them, and what they leave alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.check_set import load_check_set
from h2htalk.data.readers.coverage import state_of
from h2htalk.data.readers.passages import conversation_passages
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.errors import DataError
from h2htalk.rounds.annotator_erasure import erase_annotator
from h2htalk.rounds.assignment.planted_shares import choose_planted, planted_number, spread
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.readers.planted import PlantedResult, _listed
from h2htalk.rounds.reads import reads_of_round
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import make_spec
from support.curations import finished
from support.doubles.argilla_double import ArgillaDouble
from support.readers import begin_planted, planted_of, right
from support.rounds import (
    NAMES,
    answer,
    begin,
    candidate,
    crowd,
    decisions,
    expert,
    items_of,
    people,
    spec_of,
)


def ids(path: Path) -> dict[str, str]:
    return {one.name: one.id for one in RoundFolder(path).annotators()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_planted_dialogues_are_of_the_check_set_and_tell_no_reader_what_to_answer(
    language: Language,
) -> None:
    known = {one.id: one for one in load_check_set(language)}
    for label, names in _listed()[language].items():
        assert len(names) >= 9
        assert {(known[name].label, known[name].told) for name in names} == {(label, False)}


def test_a_share_has_one_planted_item_in_twenty_and_as_many_as_a_reader_must_answer() -> None:
    assert [planted_number(count) for count in (0, 1, 9, 39, 40, 60, 100)] == [0, 2, 2, 2, 2, 3, 5]
    pool = [Item(f"h{n}", "en", gold={"harmful": "yes"}) for n in range(4)]
    pool += [Item("f", "en", gold={"harmful": "no"})]
    assert [item.id for item in choose_planted(pool, 4, ())] == ["h0", "h1", "h2", "f"]
    assert [item.id for item in choose_planted(pool, 4, {"h1", "x"})] == ["h0", "h2", "f"]
    assert len(choose_planted(pool, 9, ())) == 5
    mixed = spread(list("abcdef"), ["P", "Q"])
    assert [one for one in mixed if one in "abcdef"] == list("abcdef")
    assert abs(mixed.index("P") - mixed.index("Q")) >= 3


def test_people_of_small_rounds_count_as_readers(tmp_path: Path) -> None:
    """With one planted item in twenty, nobody who had fewer than 40 items could count."""
    path = begin_planted(tmp_path, count=3)
    (first,) = RoundFolder(path).assignment_sets()
    planted = planted_of(path)
    given = Counter(
        planted[one.item].gold["harmful"] for one in first.assignments if one.item in planted
    )
    assert given == {"yes": 4}
    answer(path, lambda item, _: right(path, item))
    close_round(path)
    assert [read.people for read in reads_of_round(read_outcome(path))] == [2, 2, 2]


def in_two_languages(folder: Path) -> Path:
    """An open crowd round of 12 items in each language; two annotators read both."""
    items = [
        {"id": f"{language}-{n}", "language": language, "prompt": f"Rain again, or snow? ({n})"}
        for language in LANGUAGES
        for n in range(12)
    ]
    write_jsonl(folder / "items.jsonl", items)
    (folder / "people.csv").write_text(
        "name,languages,crisis\nannalena,en zh,yes\nbogumil,zh en,yes\n"
    )
    options = {"annotators": str(folder / "people.csv"), "overlap": 2}
    open_round(make_spec("crowd", str(folder / "items.jsonl"), options), folder / "round")
    return folder / "round"


def test_who_reads_several_languages_is_checked_in_each_and_counts_by_language(
    tmp_path: Path,
) -> None:
    """They got English planted items alone, and counted as readers of Chinese."""
    path = in_two_languages(tmp_path)
    planted = planted_of(path)
    items = items_of(path)
    (first,) = RoundFolder(path).assignment_sets()
    given = Counter(
        (one.annotator, planted[one.item].language)
        for one in first.assignments
        if one.item in planted
    )
    assert given == {(who, language): 2 for who in ids(path).values() for language in LANGUAGES}

    def typed(item: str, _: str) -> Mapping[str, str]:
        return right(path, item) if items[item].language == "en" else crowd()

    answer(path, typed)
    close_round(path)
    reads = reads_of_round(read_outcome(path))
    assert Counter((items[read.item].language, read.people) for read in reads) == {
        ("en", 2): 12,
        ("zh", 0): 12,
    }
    notes = [note for note in round_status(path).notes if note.startswith("planted items")]
    assert notes[0] == "planted items, en: 2 of 2 annotators count as readers"
    assert notes[1].startswith("planted items, zh: 0 of 2 annotators count as readers; ")
    # What is left of somebody who was erased counts where they counted.
    erase_annotator(path, "bogumil", keep_payments=False)
    votes = {votes.item: votes.readers for votes in RoundFolder(path).erased_votes()}
    assert Counter((items[item].language, readers) for item, readers in votes.items()) == {
        ("en", 1): 12,
        ("zh", 0): 12,
    }


def test_every_annotator_gets_planted_items_that_look_like_the_others(tmp_path: Path) -> None:
    path = begin_planted(tmp_path, care={"session_items": 20, "crisis_share": 0.5})
    planted = planted_of(path)
    (first,) = RoundFolder(path).assignment_sets()
    shares = {
        who: [one for one in first.assignments if one.annotator == who]
        for who in ids(path).values()
    }
    for theirs in shares.values():
        assert len(theirs) == 47
        sessions = [one.session for one in theirs if one.item in planted]
        assert len(sessions) == len(set(sessions)) == 2
        assert {planted[one.item].gold["harmful"] for one in theirs if one.item in planted} == {
            "yes"
        }
    # Nothing in a workbook tells them, and their ids say nothing of the set.
    assert not [name for name in planted if "check" in name or not name.startswith("i-")]
    # They are no items of the round for the manager.
    status = round_status(path)
    assert (status.items, status.assignments, set(status.missing) & set(planted)) == (45, 90, set())
    assert {one.planted for one in items_of(path).values()} == {True, False}
    # The same command changes nothing.
    open_round(RoundFolder(path).spec(), path)
    assert planted_of(path) == planted


def test_items_with_a_proposed_reply_get_planted_ones_with_a_reply(tmp_path: Path) -> None:
    records = [candidate(f"c-{n}", "accept") for n in range(3)]
    workspace = finished(tmp_path / "work", "review", records).path
    open_round(spec_of("crowd", workspace, planted=True), tmp_path / "crowd")
    planted = planted_of(tmp_path / "crowd")
    assert all(item.reference for item in planted.values())
    assert all(dict(item.context).keys() == {"persona"} for item in planted.values())
    harmful = {
        one.messages[one.turn].content for one in load_check_set("en") if one.label == "harm"
    }
    assert {
        item.reference in harmful for item in planted.values() if item.gold["harmful"] == "yes"
    } == {True}


@pytest.mark.parametrize(
    ("noticed", "of", "counts"),
    [
        (0, 0, False),
        (1, 1, False),
        (2, 2, True),
        (1, 2, False),
        (4, 5, True),
        (3, 5, False),
        (8, 10, True),
    ],
)
def test_who_misses_more_than_a_fifth_is_no_reader(noticed: int, of: int, counts: bool) -> None:
    assert PlantedResult("a", noticed, of).is_reader is counts


def test_who_misses_planted_items_votes_and_is_no_reader(tmp_path: Path) -> None:
    path = begin_planted(tmp_path, people=3)
    lazy = ids(path)["annalena"]
    answer(path, lambda item, who: crowd() if who == "annalena" else right(path, item))
    (note,) = [note for note in round_status(path).notes if note.startswith("planted items: ")]
    assert note == (
        f"planted items: 2 of 3 annotators count as readers; {lazy} missed 2 of 2 harmful ones; their votes count"
    )
    status, settled = close_round(path)
    assert note in status.notes
    assert len(settled) == 45 * 4
    assert {one.votes for one in settled} == {3}
    reads = reads_of_round(read_outcome(path))
    assert (len(reads), {read.people for read in reads}) == (45, {2})
    # No list of who is qualified, and nothing of them in the statistics: they are no gold items of the manager.
    assert not (path / "private" / "qualified.csv").exists()
    assert "annalena,47,0" in (path / "private" / "payment.csv").read_text()
    rows = (path / "annotator_statistics.csv").read_text().splitlines()
    assert {row.split(",")[1] for row in rows[1:]} == {"45"}


def test_people_of_a_round_without_planted_items_do_not_count(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", 3, people=2, overlap=2)
    assert planted_of(path) == {}
    answer(path, lambda *_: crowd())
    close_round(path)
    assert {read.people for read in reads_of_round(read_outcome(path))} == {0}
    spec = make_spec("crowd", str(tmp_path / "items.jsonl"), {"overlap": 2, "planted": False})
    _, messages = open_round(spec, tmp_path / "again")
    assert (
        "planted = false: no planted items, so the people of this round do not count as readers"
        in messages
    )


def test_a_pilot_gets_none(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"g-{n}", "language": "en", "prompt": "hi", "gold": {"keep": "keep"}})
        for n in range(3)
    ]
    (tmp_path / "gold.jsonl").write_text("\n".join(lines) + "\n")
    open_round(make_spec("crowd", str(tmp_path / "gold.jsonl"), {}), tmp_path / "pilot")
    assert planted_of(tmp_path / "pilot") == {}


def test_who_joins_later_is_checked_too(tmp_path: Path) -> None:
    path = begin_planted(tmp_path, people=2)
    answer(path, lambda item, _: right(path, item), only=NAMES[:1])
    reopen_round(path, without=["bogumil"], annotators=people(tmp_path / "more.csv", "chen_wei"))
    second = RoundFolder(path).assignment_sets()[1]
    given = Counter(one.item in planted_of(path) for one in second.assignments)
    assert (given[False], given[True]) == (45, 2)
    answer(path, lambda item, _: right(path, item))
    close_round(path)
    assert {read.people for read in reads_of_round(read_outcome(path))} == {2}


def test_people_count_for_the_gates_whose_question_they_answered(tmp_path: Path) -> None:
    """Whoever answered about harm was counted for every gate that the round asked about."""
    path = begin_planted(tmp_path, people=3, ask=["minor", "explicit", "crisis"])
    quiet = {"minor": "no", "explicit": "no", "crisis": "no"}
    answer(path, lambda item, _: {**right(path, item), **quiet})
    close_round(path)
    whole = reads_of_round(read_outcome(path))
    assert (len(whole), {(read.gates, read.people) for read in whole}) == (45, {(READ_GATES, 3)})
    first = ids(path)["annalena"]
    file = path / "annotations.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = [one for one in lines if one["question"] != "minor"]
    kept = [one for one in kept if one["question"] != "crisis" or one["annotator"] == first]
    file.write_text("".join(json.dumps(one) + "\n" for one in kept), encoding="utf-8")
    reads = reads_of_round(read_outcome(path))
    answered = ("companion_harm", "explicit_content", "personal_data")
    assert Counter((read.gates, read.people) for read in reads) == {
        (answered, 3): 45,
        (("crisis_care",), 1): 45,
    }
    passages = conversation_passages(items_of(path)[reads[0].item].turns)
    are_read = [gate for gate in READ_GATES if state_of(gate, passages, "en", reads, ()).is_read]
    assert tuple(are_read) == answered


def test_an_erased_reader_stays_one_of_the_people(tmp_path: Path) -> None:
    path = begin_planted(tmp_path, people=2)
    answer(path, lambda item, _: right(path, item))
    close_round(path)
    before = reads_of_round(read_outcome(path))
    stored = decisions(path)
    erase_annotator(path, "bogumil", keep_payments=False)
    after = reads_of_round(read_outcome(path))
    assert [(read.item, read.people, read.passages) for read in after] == [
        (read.item, read.people, read.passages) for read in before
    ]
    close_round(path)
    assert {key: one["label"] for key, one in decisions(path).items()} == {
        key: one["label"] for key, one in stored.items()
    }
    assert not [note for note in round_status(path).notes if "erased-" in note]


@pytest.mark.parametrize("readers", [50, 2, -1])
def test_erased_votes_name_no_more_readers_than_answers(tmp_path: Path, readers: int) -> None:
    """Two files by hand made people of nobody."""
    path = begin_planted(tmp_path, people=3)
    answer(path, lambda item, _: right(path, item))
    close_round(path)
    erase_annotator(path, "bogumil", keep_payments=False)
    file = path / "erased_votes.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["readers"] for line in lines} == {1}
    lines[0]["readers"] = readers
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    message = f"erased_votes.jsonl:1: .*readers is {readers}, and 1 of 1 answers are about harm; restore the original"
    with pytest.raises(DataError, match=message):
        reads_of_round(read_outcome(path))


def test_who_left_out_planted_items_is_not_done_for_prolific(tmp_path: Path) -> None:
    """They are paid like others, so a submission without them is not listed for approval."""
    items = begin(tmp_path / "made", "crowd", 2).parent / "items.jsonl"
    listed = tmp_path / "people.csv"
    listed.write_text(
        "name,languages,crisis,participant_id\nannalena,en,yes,p0\nbogumil,en,yes,p1\n"
    )
    path = tmp_path / "round"
    open_round(
        make_spec("crowd", str(items), {"annotators": str(listed), "overlap": 2, "hourly": 6.0}),
        path,
    )
    planted = planted_of(path)
    answer(
        path, lambda item, who: {} if who == "bogumil" and item in planted else right(path, item)
    )
    round_status(path)
    done = (path / "private" / "prolific_done.csv").read_text()
    assert "annalena" in done
    assert "bogumil" not in done
    # The round itself waits for nobody.
    close_round(path)
    rows = (path / "private" / "payment.csv").read_text()
    assert "annalena,4,0" in rows
    assert "bogumil,2,0" in rows


def test_an_adaptive_round_asks_nobody_more_because_of_planted_items(tmp_path: Path) -> None:
    adaptive = {"on": True, "minimum": 2, "lead": 2}
    path = begin(tmp_path, "crowd", 3, people=4, overlap=4, planted=True, adaptive=adaptive)
    answer(path, lambda item, _: right(path, item))
    status = round_status(path)
    assert (status.missing, status.unassigned, status.items_done) == ({}, 0, 3)
    close_round(path)


def test_experts_go_on_with_what_people_kept_alone(tmp_path: Path) -> None:
    path = begin_planted(tmp_path, 4)
    answer(path, lambda item, _: right(path, item))
    close_round(path)
    open_round(spec_of("expert", path, 2, planted=True), tmp_path / "expert")
    known = {name for name, item in items_of(tmp_path / "expert").items() if not item.planted}
    assert known == {name for name, item in items_of(path).items() if not item.planted}
    answer(tmp_path / "expert", lambda *_: expert())
    close_round(tmp_path / "expert")
    assert read_outcome(tmp_path / "expert").decisions.keys() == {
        (name, question)
        for name in known
        for question in ("accuracy", "consistency", "domain_compliance", "keep", "harmful")
    }


def test_a_server_offers_a_planted_item_in_each_session(
    server: ArgillaDouble, tmp_path: Path
) -> None:
    spec = make_spec(
        "crowd",
        str(begin(tmp_path / "made", "crowd", 45).parent / "items.jsonl"),
        {
            "where": "argilla",
            "overlap": 2,
            "annotators": str(people(tmp_path / "people.csv", *NAMES[:3])),
            "care": {"session_items": 24, "crisis_share": 0.5},
        },
    )
    open_round(spec, tmp_path / "round")
    state = read_state(RoundFolder(tmp_path / "round"))
    planted = planted_of(tmp_path / "round")
    sessions = [sum(item in planted for item in group) for group in state.sets[0].groups]
    assert sessions == [1, 1]
    shown = [len(dataset["records"]) for dataset in server.datasets.values()]
    assert sum(shown) == 47
    assert round_status(tmp_path / "round").items == 45

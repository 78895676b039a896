"""What the people of rounds have read: the question on harm and real people, its rule, and their readings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from h2htalk.curation.release.content import record_passages
from h2htalk.curation.release.selection import scenario_of_record
from h2htalk.curation.show import show
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.coverage import state_of
from h2htalk.data.readers.passages import SpokenPassage
from h2htalk.data.readers.reads import Read
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.rounds.argilla.datasets import displayed
from h2htalk.rounds.item_sources import read_items, scenario_item
from h2htalk.rounds.items import Item, as_given
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.questions import READING_QUESTIONS, questions_for
from h2htalk.rounds.reads import item_hashes, reads_of_round
from h2htalk.rounds.round_folder import RoundFolder, items_fingerprint
from h2htalk.rounds.settings import RoundSpec, describe_consent, make_spec
from h2htalk.rounds.texts.interface import guidelines, interface_text
from support.command_line import h2htalk_here
from support.curations import finished
from support.rounds import (
    answer,
    begin,
    candidate,
    closed,
    crowd,
    decisions,
    expert,
    items_of,
    spec_of,
)
from support.spreadsheet_rounds import workbook_path

ASK = ("minor", "explicit", "crisis")


def asked(path: Path) -> list[str]:
    return [question.name for question in RoundFolder(path).questions()]


def crowd_of(folder: Path, typed: Mapping[str, Mapping[str, str]], **settings: Any) -> Path:
    """A closed crowd round of two people; what both typed differs by item from keep and no."""
    names = [f"c-{n}" for n in range(3)]
    workspace = finished(
        folder / "work", "review", [candidate(name, "accept") for name in names]
    ).path
    path = folder / "crowd"
    open_round(spec_of("crowd", workspace, **settings), path)
    more = dict.fromkeys(settings.get("ask", ()), "no")
    first = next(one.name for one in RoundFolder(path).annotators())

    def fill(item: str, annotator: str) -> Mapping[str, str]:
        return crowd() | more | (typed.get(item, {}) if annotator == first else {})

    answer(path, fill)
    close_round(path)
    return path


def by_item(reads: tuple[Read, ...]) -> dict[str, Read]:
    return {read.item: read for read in reads}


def test_every_crowd_and_expert_round_asks_about_harm_and_real_people(tmp_path: Path) -> None:
    assert asked(begin(tmp_path / "crowd", "crowd")) == ["subtask", "keep", "quality", "harmful"]
    assert asked(begin(tmp_path / "expert", "expert"))[-3:] == ["keep", "harmful", "comment"]
    stored = json.loads((tmp_path / "crowd" / "round" / "round.json").read_text())
    assert stored["questions"] == ["subtask", "keep", "quality", "harmful"]
    text = RoundFolder(tmp_path / "crowd" / "round").guidelines("en")
    assert "## Is something here harmful, or about a real person?\n" in text


def test_a_settings_file_asks_for_more_as_python_does(tmp_path: Path) -> None:
    python = begin(tmp_path / "python", "crowd", ask=("crisis", "minor"))
    assert asked(python)[-3:] == ["harmful", "minor", "crisis"]
    settings = tmp_path / "round.toml"
    items = tmp_path / "python" / "items.jsonl"
    settings.write_text('ask = ["crisis", "minor"]\n')
    result = h2htalk_here(
        "round", "open", "crowd", items, "--settings", settings, "--out", tmp_path / "toml"
    )
    assert result.returncode == 0, result.stderr
    assert asked(tmp_path / "toml") == asked(python)
    with pytest.raises(ConfigError, match="ask: a round of safety asks no such questions"):
        make_spec("safety", "mini", {"ask": ["minor"]})
    with pytest.raises(ConfigError, match="ask"):
        make_spec("crowd", "mini", {"ask": ["age"]})


def test_a_round_of_an_earlier_version_keeps_its_questions(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", people=2, overlap=2)
    stored = json.loads((path / "round.json").read_text())
    stored["questions"].remove("harmful")
    del stored["spec"]["ask"]
    (path / "round.json").write_text(json.dumps(stored))
    for workbook in (path / "spreadsheets").iterdir():
        workbook.unlink()
    # The same command completes it, and asks nothing new.
    open_round(RoundFolder(path).spec(), path)
    assert asked(path) == ["subtask", "keep", "quality"]
    answer(path, lambda *_: {"subtask": "none", "keep": "keep", "quality": "4"})
    assert round_status(path).missing == {}
    close_round(path)
    assert reads_of_round(read_outcome(path)) == ()


def test_a_yes_by_one_decides_and_unsure_is_no_no(tmp_path: Path) -> None:
    path = crowd_of(tmp_path, {"c-0": {"harmful": "yes"}, "c-1": {"harmful": "unsure"}})
    found = {
        item: one for (item, question), one in decisions(path).items() if question == "harmful"
    }
    assert {item: (one["label"], one["rule"]) for item, one in found.items()} == {
        "c-0": ("yes", "any_yes"),
        "c-1": ("unsure", "any_yes"),
        "c-2": ("no", "any_yes"),
    }
    assert (found["c-0"]["support"], found["c-0"]["votes"]) == (1, 2)
    # It is no tie between one and one, and asks for no third person.
    assert round_status(path).ties == 0


def test_experts_get_what_one_person_found_with_a_note_and_close_it(tmp_path: Path) -> None:
    path = crowd_of(
        tmp_path, {"c-0": {"harmful": "yes"}, "c-1": {"harmful": "unsure"}, "c-2": {"keep": "keep"}}
    )
    status, notes = open_round(spec_of("expert", path, 3), tmp_path / "expert")
    assert status.items == 3
    assert (
        "crowd: somebody answered yes for 1 item (harmful 1); a note asks the experts to look again"
        in notes
    )
    items = items_of(tmp_path / "expert")
    assert {name: item.note for name, item in items.items()} == {
        "c-0": interface_text("found_harmful", "en"),
        "c-1": "",
        "c-2": "",
    }
    closed(tmp_path / "expert", expert())
    crowds, experts = (
        by_item(reads_of_round(read_outcome(one))) for one in (path, tmp_path / "expert")
    )
    found = [(one.gate, one.unsure) for one in crowds["c-0"].findings]
    assert found == [("companion_harm", False), ("personal_data", False)]
    assert [(one.gate, one.unsure) for one in crowds["c-1"].findings] == [
        ("companion_harm", True),
        ("personal_data", True),
    ]
    # What a release needs to see that the experts have looked at the same passages, and found nothing.
    assert (experts["c-0"].reader, experts["c-0"].findings) == ("people:expert", ())
    assert (experts["c-0"].passages, experts["c-0"].gates) == (
        crowds["c-0"].passages,
        crowds["c-0"].gates,
    )
    passages = record_passages(Scenario.from_dict(candidate("c-0", "accept")["scenario"]))
    assert state_of("companion_harm", passages, "en", [crowds["c-0"]], (), "c-0").findings


def test_a_dropped_item_stays_dropped_whatever_was_found(tmp_path: Path) -> None:
    path = crowd_of(tmp_path, {})
    stored = decisions(path)
    assert stored["c-0", "keep"]["label"] == "keep"
    dropped = begin(tmp_path / "dropped", "crowd", 2, people=2, overlap=2)
    names = sorted(items_of(dropped))
    answer(dropped, lambda item, _: crowd("drop" if item == names[0] else "keep", harmful="yes"))
    close_round(dropped)
    assert [item.id for item in read_items(str(dropped), kind="expert").items] == names[1:]


def test_what_a_round_asked_is_what_it_is_a_reading_for(tmp_path: Path) -> None:
    path = crowd_of(tmp_path, {"c-0": {"minor": "yes"}, "c-1": {"crisis": "unsure"}}, ask=ASK)
    reads = by_item(reads_of_round(read_outcome(path)))
    assert reads["c-2"].gates == (
        "companion_harm",
        "explicit_content",
        "minors",
        "crisis_care",
        "personal_data",
    )
    assert (reads["c-2"].reader, reads["c-2"].people, reads["c-2"].findings) == (
        "people:crowd",
        0,
        (),
    )
    assert [(one.gate, one.unsure) for one in reads["c-0"].findings] == [("minors", False)]
    assert [(one.gate, one.unsure, one.what) for one in reads["c-1"].findings] == [
        ("crisis_care", True, "crisis: unsure 1 of 2")
    ]
    # The experts after it are asked the same.
    open_round(spec_of("expert", path, 3), tmp_path / "expert")
    assert asked(tmp_path / "expert")[-5:] == ["harmful", *ASK, "comment"]
    assert items_of(tmp_path / "expert")["c-0"].note == interface_text("found_minor", "en")


def test_a_reading_has_the_day_of_its_last_answer(tmp_path: Path) -> None:
    path = crowd_of(tmp_path, {})
    lines = [json.loads(line) for line in (path / "annotations.jsonl").read_text().splitlines()]
    for line in lines:
        day = 3 if (line["item"], line["question"]) == ("c-1", "harmful") else 2
        line["when"] = f"2026-05-0{day}T23:30:00-01:00"
    (path / "annotations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dates = {read.item: read.date for read in reads_of_round(read_outcome(path))}
    assert dates == {"c-0": "2026-05-03", "c-1": "2026-05-04", "c-2": "2026-05-03"}


@pytest.mark.parametrize("subtask", sorted(SUBTASKS))
def test_annotators_see_every_passage_that_a_release_has(subtask: str) -> None:
    split = load_split("mini@1")
    scenarios = [one for one in split.scenarios if one.subtask == subtask]
    assert {one.language for one in scenarios} == {*LANGUAGES}
    for scenario in scenarios:
        released = {passage.hash for passage in record_passages(scenario)}
        assert set(item_hashes(scenario_item(scenario, split.personas))) == released


SECOND = "What did you plant first?"


def text_of_workbook(folder: RoundFolder) -> str:
    """What stands on every sheet of the first annotator."""
    workbook = load_workbook(workbook_path(folder, folder.annotators()[0].name))
    text = ""
    for sheet in workbook:
        for row in sheet.iter_rows(values_only=True):
            text += "\n".join(map(str, row))
    return text


def with_references(name: str, *texts: str) -> dict[str, Any]:
    """A candidate with these references beside its first one."""
    record = candidate(name, "accept")
    record["references"] += [{"text": text, "origin": "model:m"} for text in texts]
    return record


def test_people_are_shown_every_reference_that_a_release_holds(tmp_path: Path) -> None:
    """The second ones were on no sheet, stayed unread, and could not be left out either."""
    texts = [SECOND, *(f"And then, in bed number {number}?" for number in range(5))]
    workspace = finished(tmp_path / "work", "review", [with_references("c-0", *texts)])
    path = tmp_path / "crowd"
    open_round(spec_of("crowd", workspace.path), path)
    scenario = scenario_of_record(RoundFolder(path).sources()["c-0"], "c-0")
    assert scenario.references[1:] == tuple(texts[:4])  # a release takes five
    released = {passage.hash for passage in record_passages(scenario)}
    (shown,) = items_of(path).values()
    assert set(item_hashes(shown)) == released
    on_page = displayed(shown)["data"]
    folder = RoundFolder(path)
    on_sheet = text_of_workbook(folder)
    printed = "\n".join(show(str(path)))
    for text in scenario.references[1:]:
        assert text in json.loads(on_page)["others"]
        assert text in on_sheet
        assert f"reference: {text}" in printed
    assert texts[4] not in on_page + on_sheet + printed
    closed(path, crowd())
    open_round(spec_of("expert", path, 3), tmp_path / "expert")
    closed(tmp_path / "expert", expert())
    (read,) = reads_of_round(read_outcome(tmp_path / "expert"))
    assert set(read.passages) == released


def test_a_reference_that_was_not_shown_stays_unread(tmp_path: Path) -> None:
    """Rounds of earlier versions showed the first one; the same command goes on with what it showed."""
    workspace = finished(tmp_path / "work", "review", [with_references("c-0", SECOND)])
    path = tmp_path / "crowd"
    spec = spec_of("crowd", workspace.path)
    open_round(spec, path)
    (stored,) = items_of(path).values()
    before = replace(stored, other_references=())
    (path / "items.jsonl").write_text(json.dumps(before.to_dict()) + "\n")
    manifest = json.loads((path / "round.json").read_text())
    manifest["items_sha256"] = items_fingerprint(as_given([before]))
    (path / "round.json").write_text(json.dumps(manifest))
    for workbook in (path / "spreadsheets").iterdir():
        workbook.unlink()
    open_round(spec, path)
    folder = RoundFolder(path)
    assert SECOND not in text_of_workbook(folder)
    closed(path, crowd())
    (read,) = reads_of_round(read_outcome(path))
    scenario = scenario_of_record(folder.sources()["c-0"], "c-0")
    *_, shown, hidden = record_passages(scenario)
    assert (shown.hash in read.passages, hidden.hash in read.passages) == (True, False)
    # Experts who come after it see both.
    open_round(spec_of("expert", path, 3), tmp_path / "expert")
    assert items_of(tmp_path / "expert")["c-0"].other_references == (SECOND,)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["crowd", "expert"])
def test_guidelines_with_every_question_fit_the_servers(kind: Any, language: Language) -> None:
    """Argilla takes 10,000 characters."""
    spec = RoundSpec(
        kind,
        "x",
        where="argilla",
        completion="C1X2Y3",
        contact="Lin, lin@example.org",
        ethics="no. 17",
    )
    text = guidelines(spec, questions_for(kind, [], READING_QUESTIONS), language, unread="some")
    assert len(text) <= 10_000


def test_what_the_settings_leave_out_is_named_with_what_it_is() -> None:
    """Of one setting, the message said that the page describes *both*."""
    without_ethics = RoundSpec("crowd", "x", contact="Lin, lin@example.org")
    assert describe_consent(without_ethics) == [
        "the settings have no `ethics` (which ethics review the study has), and the guidelines say so; to name it, "
        "write a file for --settings as docs/reference/rounds.md describes"
    ]
    assert (
        "no `contact` (whom annotators ask) and `ethics` (which"
        in describe_consent(RoundSpec("crowd", "x"))[0]
    )
    assert describe_consent(replace(without_ethics, ethics="no. 17")) == []


def test_an_item_without_answers_has_no_reading(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", 2, people=2, overlap=2)
    close_round(path, force=True)
    assert reads_of_round(read_outcome(path)) == ()


def test_gold_items_are_no_readings(tmp_path: Path) -> None:
    path = crowd_of(tmp_path, {})
    outcome = read_outcome(path)
    gold = tuple(
        replace(item, gold={"harmful": "no"}) if item.id == "c-0" else item
        for item in outcome.items
    )
    assert {read.item for read in reads_of_round(replace(outcome, items=gold))} == {"c-1", "c-2"}


def test_hashes_ignore_what_is_shown_beside_an_item() -> None:
    item = Item(
        "a", "en", context=(("persona", "Nora likes rain."), ("memories", "The user likes tea."))
    )
    assert item_hashes(item) == (SpokenPassage("user", "The user likes tea.").hash,)

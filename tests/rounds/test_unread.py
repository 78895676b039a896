"""Items that nobody has read before the annotators."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.stage_folder import Kept
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.certificates import Certificate, add_certificate
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.releases.release_folder import hash_files, read_manifest
from h2htalk.data.scenario import Scenario
from h2htalk.errors import RoundError
from h2htalk.integrations.label_studio.platform import task_html
from h2htalk.rounds.argilla.datasets import displayed
from h2htalk.rounds.item_sources import read_items, scenario_item
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.reads import item_hashes
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.texts.interface import interface_text
from support.certificates import certifying_figures
from support.curations import finished
from support.readers import begin_planted, planted_of, right
from support.releases import make_release
from support.rounds import NAMES, answer, begin, candidate, crowd, items_of, people, spec_of
from support.spreadsheet_rounds import rows_of, workbook_path

REVIEWER, GUARD = "review:m", "guard:m"
NOTICE = interface_text("unread_notice", "en")


def certificate(reader: str, **changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        "reader": reader,
        "prompt": "p",
        "set": check_set_fingerprint(),
        "date": "2026-01-01",
        "figures": certifying_figures(),
        "gates": dict.fromkeys(LANGUAGES, READ_GATES),
    }
    return Certificate(**(fields | changes))


def hashes_of(record: dict[str, Any]) -> list[str]:
    return list(item_hashes(scenario_item(Scenario.from_dict(record["scenario"]))))


def reading(reader: str, texts: Sequence[str], **changes: Any) -> dict[str, Any]:
    fields = {
        "item": "c",
        "reader": reader,
        "date": "2026-01-01",
        "gates": list(READ_GATES),
        "prompt": "p",
    }
    return {**fields, "passages": list(texts), **changes}


def made(name: str, *, by: str = "", **safety: Any) -> dict[str, Any]:
    """A candidate whose passages are all its own, read whole by a reviewer."""
    record = candidate(name, "accept")
    record["scenario"]["reference"] = f"That is how {name} looks today."
    record["scenario"]["metadata"] = {"safety": safety}
    if by:
        record["review"]["read"] = reading(by, hashes_of(record), item=name)
    return record


def opened(
    folder: Path,
    *records: dict[str, Any],
    unread: Any = "warn",
    certificates: Sequence[Certificate] = (),
) -> tuple[Path, list[str]]:
    """A crowd round on candidates, whose second annotator did not agree to crises."""
    workspace = finished(folder / "work", "review", list(records)).path
    for one in certificates:
        add_certificate(workspace, one)
    spec = spec_of("crowd", workspace, 2, care={"unread": unread, "crisis_share": 1.0})
    listed = Path(spec.annotators)
    listed.write_text(listed.read_text().replace(f"{NAMES[1]},en,yes", f"{NAMES[1]},en,no"))
    _, messages = open_round(spec, folder / "crowd")
    return folder / "crowd", messages


def given_to(path: Path, name: str) -> set[str]:
    (annotator,) = (one.id for one in RoundFolder(path).annotators() if one.name == name)
    (first,) = RoundFolder(path).assignment_sets()
    return {one.item for one in first.assignments if one.annotator == annotator}


def unread(path: Path) -> set[str]:
    return {name for name, item in items_of(path).items() if item.unread}


def test_an_unread_item_with_a_hint_goes_to_nobody_who_declined_crises(tmp_path: Path) -> None:
    records = [
        made("c-hint", crisis_hint=True),
        made("c-plain"),
        made("c-read", by=REVIEWER, crisis_hint=True),
    ]
    path, messages = opened(tmp_path, *records, certificates=[certificate(REVIEWER)])
    assert given_to(path, NAMES[0]) == {"c-hint", "c-plain", "c-read"}
    assert given_to(path, NAMES[1]) == {"c-plain", "c-read"}
    # A hint announces nothing.
    assert not items_of(path)["c-hint"].crisis
    assert (
        "no reader who counts has read all of 2 of 3 items for companion_harm, explicit_content and crisis_care: "
        "annotators are told so in the guidelines and above their text; annotators who did not agree to crises do not "
        "get 1 of them"
    ) in messages
    text = RoundFolder(path).guidelines("en")
    assert (
        "- Nobody has checked some of these items for every hard moment before you, and each of them says so"
        in text
    )
    # The same command completes it.
    open_round(RoundFolder(path).spec(), path)


def test_what_a_guard_took_back_is_a_hint_until_its_reading_counts(tmp_path: Path) -> None:
    """A guard that nobody has checked said that there is no crisis, and who declined crises got the item."""
    taken_back = ["crisis.possible"]
    records = [
        made("c-unchecked", by="review:unchecked", contradicted=taken_back),
        made("c-checked", by=REVIEWER, contradicted=taken_back),
    ]
    path, _ = opened(tmp_path, *records, certificates=[certificate(REVIEWER)])
    assert given_to(path, NAMES[0]) == {"c-unchecked", "c-checked"}
    assert given_to(path, NAMES[1]) == {"c-checked"}


def test_unread_items_are_withheld_where_the_settings_say_so(tmp_path: Path) -> None:
    records = [made("c-plain"), made("c-read", by=REVIEWER)]
    path, _ = opened(tmp_path, *records, unread="withhold", certificates=[certificate(REVIEWER)])
    assert given_to(path, NAMES[1]) == {"c-read"}
    assert given_to(path, NAMES[0]) == {"c-plain", "c-read"}


def test_read_items_are_not_called_unread(tmp_path: Path) -> None:
    path, messages = opened(
        tmp_path, made("c-read", by=REVIEWER), certificates=[certificate(REVIEWER)]
    )
    assert not [message for message in messages if "no reader" in message]
    assert "Nobody has checked" not in RoundFolder(path).guidelines("en")
    assert NOTICE not in str(rows_of(workbook_path(RoundFolder(path), NAMES[0])))


@pytest.mark.parametrize(
    ("certificates", "changes"),
    [
        pytest.param([], {}, id="without a certificate"),
        pytest.param([certificate(REVIEWER, obeyed=4)], {}, id="of one that obeys"),
        pytest.param([certificate(REVIEWER)], {"prompt": "another"}, id="by another question"),
        pytest.param(
            [certificate(REVIEWER, gates={"en": ("companion_harm", "minors")})],
            {},
            id="of one that misses crises",
        ),
        pytest.param(
            [certificate(REVIEWER, gates={"zh": READ_GATES})],
            {},
            id="of one checked in another language",
        ),
    ],
)
def test_a_review_that_does_not_count_has_read_nothing(
    tmp_path: Path, certificates: list[Certificate], changes: dict[str, Any]
) -> None:
    """Any reading of a reviewer was taken for one that counts."""
    record = made("c", by=REVIEWER)
    record["review"]["read"] |= changes
    path, _ = opened(tmp_path, record, certificates=certificates)
    assert unread(path) == {"c"}


def test_a_review_of_the_inputs_alone_leaves_the_reply_unread(tmp_path: Path) -> None:
    record = made("c", by=REVIEWER)
    without_reply = {**record, "scenario": {**record["scenario"], "reference": "Another reply."}}
    inputs = set(hashes_of(record)) & set(hashes_of(without_reply))
    record["review"]["read"]["passages"] = sorted(inputs)
    path, _ = opened(tmp_path, record, certificates=[certificate(REVIEWER)])
    assert unread(path) == {"c"}


def read_by_guard(folder: Path, *records: dict[str, Any]) -> None:
    """The stage `safety` of a workspace whose guard read all passages of these candidates."""
    kept = []
    for record in records:
        dialogue = {"id": f"d-{record['id']}", "messages": []}
        kept.append(
            Kept(dialogue, audit={"read": reading(GUARD, hashes_of(record), item=dialogue["id"])})
        )
    finished(folder / "work", "safety", kept)


def test_what_a_guard_has_read_is_not_called_unread(tmp_path: Path) -> None:
    """A guard's readings stand in the workspace, and annotators were told that nobody had read what it read."""
    first = made("c-1", crisis_hint=True)
    second = made("c-2", crisis_hint=True)
    read_by_guard(tmp_path, first)
    path, _ = opened(tmp_path, first, second, certificates=[certificate(GUARD)])
    assert unread(path) == {"c-2"}
    assert given_to(path, NAMES[1]) == {"c-1"}


def test_a_guard_without_a_certificate_has_read_nothing(tmp_path: Path) -> None:
    record = made("c-1")
    read_by_guard(tmp_path, record)
    path, _ = opened(tmp_path, record)
    assert unread(path) == {"c-1"}


@pytest.mark.parametrize("part", ["", "#test"])
def test_the_readings_of_a_release_hold_for_its_items(tmp_path: Path, part: str) -> None:
    folder = make_release(tmp_path / "release")
    source = f"{folder}{part}"
    read, *others = read_items(source).items
    own_certificate = certificate(GUARD).to_dict()
    write_jsonl(folder / "reads.jsonl", [reading(GUARD, item_hashes(read), item=read.id)])
    manifest = read_manifest(folder)
    facts = {**manifest.facts, "certificates": [own_certificate]}
    replace(manifest, files=hash_files(folder), facts=facts).write(folder)
    listed = people(tmp_path / "people.csv", NAMES[0])
    listed.write_text(listed.read_text().replace(",en,", ",en zh,"))
    open_round(
        make_spec("crowd", source, {"annotators": str(listed), "overlap": 1, "planted": False}),
        tmp_path / "r",
    )
    assert unread(tmp_path / "r") == {item.id for item in others}


def asking(folder: Path, *ask: str, people: int = 2) -> Path:
    """A closed crowd round whose people count as readers."""
    path = begin_planted(folder, people=people, ask=list(ask))
    quiet = dict.fromkeys(ask, "no")
    answer(path, lambda item, _: {**right(path, item), **quiet})
    close_round(path)
    return path


def after(path: Path, kind: str = "expert") -> Path:
    """A round on what a closed round keeps."""
    open_round(spec_of(kind, path, 3), path.parent / kind)
    return path.parent / kind


def test_people_have_read_what_they_were_asked_about(tmp_path: Path) -> None:
    about_all = after(asking(tmp_path / "all", "explicit", "crisis"))
    assert unread(about_all) == set()
    assert "Nobody has checked" not in RoundFolder(about_all).guidelines("en")
    about_harm = after(asking(tmp_path / "harm"))
    assert len(unread(about_harm)) == 45
    # They read it for harm: the others are told what nobody has checked, and not that nobody has checked it.
    notice = "Nobody has checked this item for sexual content or crises before you"
    rows = rows_of(workbook_path(RoundFolder(about_harm), NAMES[0]))
    assert [notice in row["notice"] for row in rows] == [True] * len(rows)
    assert NOTICE not in str(rows)


def test_what_is_unread_is_named_in_each_language_and_to_the_manager(tmp_path: Path) -> None:
    for language, notice in (
        ("en", "Nobody has checked this item for crises before you"),
        ("zh", "在你之前还没有人检查过这一条里有没有危机"),
    ):
        item = Item(id="i", language=language, unread=True, unread_for=("crisis_care",))
        assert notice in displayed(item)["data"]
    record = made("c-1", by=REVIEWER)
    other = made("c-2")
    gates = {"en": ("companion_harm", "explicit_content")}
    path, messages = opened(
        tmp_path, record, other, certificates=[certificate(REVIEWER, gates=gates)]
    )
    counts = "2 of 2 items for companion_harm (1), explicit_content (1) and crisis_care (2)"
    assert any(f"no reader who counts has read all of {counts}" in message for message in messages)
    assert items_of(path)["c-1"].unread_for == ("crisis_care",)
    assert items_of(path)["c-2"].unread_for == ()


def test_people_who_do_not_count_have_read_nothing(tmp_path: Path) -> None:
    """Whatever came from a round was taken for read."""
    unchecked = begin(
        tmp_path / "unchecked", "crowd", 3, people=2, overlap=2, ask=["explicit", "crisis"]
    )
    answer(unchecked, lambda *_: crowd() | {"explicit": "no", "crisis": "no"})
    close_round(unchecked)
    assert len(unread(after(unchecked))) == 3


def test_a_round_of_an_earlier_version_that_asked_nothing_has_read_nothing(tmp_path: Path) -> None:
    path = begin(tmp_path, "crowd", 2, people=2, overlap=2)
    stored = json.loads((path / "round.json").read_text())
    stored["questions"].remove("harmful")
    (path / "round.json").write_text(json.dumps(stored))
    for workbook in (path / "spreadsheets").iterdir():
        workbook.unlink()
    open_round(RoundFolder(path).spec(), path)
    answer(path, lambda *_: {"subtask": "none", "keep": "keep", "quality": "4"})
    close_round(path)
    assert len(unread(after(path))) == 2


def test_an_open_round_of_an_earlier_version_says_what_it_said(tmp_path: Path) -> None:
    """Its sheets are with the annotators: their texts stay, and so do their checksums."""
    path = begin(tmp_path, "crowd", 2, people=2, overlap=2)
    assert len(unread(path)) == 2
    lines = [{**line, "unread": False} for _, line in read_jsonl(path / "items.jsonl")]
    write_jsonl(path / "items.jsonl", lines)
    open_round(RoundFolder(path).spec(), path)
    assert unread(path) == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_unread_item_says_so_on_every_platform(tmp_path: Path, language: Language) -> None:
    """Only a sentence in the guidelines did."""
    notice = interface_text("unread_notice", language)
    items = [
        {"id": "i-1", "language": language, "prompt": "Hello!"},
        {
            "id": "i-2",
            "language": language,
            "prompt": "Hello again!",
            "crisis": True,
            "note": "Look twice.",
        },
    ]
    write_jsonl(tmp_path / "items.jsonl", items)
    (tmp_path / "people.csv").write_text(f"name,languages,crisis\nannalena,{language},yes\n")
    options = {
        "annotators": str(tmp_path / "people.csv"),
        "overlap": 1,
        "care": {"crisis_share": 0.5},
    }
    open_round(make_spec("crowd", str(tmp_path / "items.jsonl"), options), tmp_path / "round")
    state = read_state(RoundFolder(tmp_path / "round"))
    given = [one for one in state.items if not one.planted]
    planted = planted_of(tmp_path / "round")
    assert [one.unread for one in given] == [True, True]
    # The planted ones look like the others.
    assert {one.unread for one in planted.values()} == {True}
    for item in state.items:
        read = Item(id=item.id, language=item.language, turns=item.turns)
        assert notice in displayed(item)["data"]
        assert notice not in displayed(read)["data"]
        assert notice in task_html(state, item)
        assert notice not in task_html(state, read)
    rows = rows_of(workbook_path(RoundFolder(tmp_path / "round"), "annalena"))
    assert [notice in row["notice"] for row in rows] == [True] * len(rows)
    announced = [row for row in rows if interface_text("crisis_notice", language) in row["notice"]]
    assert len(announced) == 1


def test_what_the_reviewer_found_announces_an_item(tmp_path: Path) -> None:
    records = [made(name, by=REVIEWER) for name in ("c-crisis", "c-explicit", "c-none")]
    records[0]["review"]["read"]["findings"] = [{"gate": "crisis_care", "what": "a goodbye"}]
    records[1]["review"]["read"]["findings"] = [{"gate": "explicit_content"}]
    path, _ = opened(tmp_path, *records)
    items = items_of(path)
    assert {name: (item.crisis, item.explicit) for name, item in items.items()} == {
        "c-crisis": (True, False),
        "c-explicit": (True, True),
        "c-none": (False, False),
    }
    assert given_to(path, NAMES[1]) == {"c-none"}


def test_nobody_eligible_for_unread_items_is_said(tmp_path: Path) -> None:
    workspace = finished(tmp_path / "work", "review", [made("c-plain")]).path
    spec = spec_of("crowd", workspace, 1, care={"unread": "withhold"})
    listed = Path(spec.annotators)
    listed.write_text(listed.read_text().replace(",yes", ",no"))
    with pytest.raises(RoundError, match="nobody has read it"):
        open_round(spec, tmp_path / "crowd")

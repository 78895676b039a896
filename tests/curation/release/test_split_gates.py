"""`release check` over a split that nobody voted on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from releases_made import case, scenario

from h2htalk.curation.release.build import check_release
from h2htalk.errors import DataError


def findings(folder: Path, *records: dict[str, Any]) -> list[tuple[str, str]]:
    folder.mkdir(exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return [(one.gate, one.detail) for one in check_release(folder).findings]


def turns(*texts: str) -> list[dict[str, Any]]:
    return [{"turns": [{"user": text, "reference": "That stays with me."} for text in texts]}]


def test_names_that_the_authors_invented_are_no_personal_data(tmp_path: Path) -> None:
    record = case(1, sessions=turns("My brother Ferdinand called last night."), points=[]).to_dict()
    assert findings(tmp_path / "split", record) == [("personal_data", "PERSON: Ferdinand")]
    (tmp_path / "split" / "invented.txt").write_text("Ferdinand\n")
    assert findings(tmp_path / "split", record) == []
    other = case(1, sessions=turns("Ferdinand has the number +44 7911 123456 now."), points=[]).to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", other)] == ["personal_data"]
    (tmp_path / "split" / "invented.txt").write_text("Ferdinand\n+44 7911 123456\nF\n")
    assert [gate for gate, _ in findings(tmp_path / "split", other)] == ["personal_data"]
    (tmp_path / "split" / "invented.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        findings(tmp_path / "split", other)


def test_help_lines_and_missing_votes_are_no_findings(tmp_path: Path) -> None:
    record = case(1, sessions=turns("Is it 0477 13 11 14 that one texts?"), points=[]).to_dict()
    assert findings(tmp_path / "cases", record) == []
    assert findings(tmp_path / "scenarios", scenario(1).to_dict()) == []


def test_an_author_says_that_a_user_is_an_adult(tmp_path: Path) -> None:
    said = turns("my mum came to the parents evening. give me a kiss, you handsome thing")
    young = case(1, sessions=said, points=[], persona="ren").to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", young)] == ["minors"]
    assert findings(tmp_path / "split", young | {"tags": ["adult"]}) == []
    plain = turns("i'm 14. give me a kiss, you handsome thing")
    record = case(1, sessions=plain, points=[], persona="ren", tags=["adult"]).to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", record)] == ["minors"]


def test_a_companion_may_say_that_it_is_an_ai(tmp_path: Path) -> None:
    honest = turns("Are you real?")
    honest[0]["turns"][0]["reference"] = "No, I'm an AI, and you deserve to know it."
    assert findings(tmp_path / "split", case(1, sessions=honest, points=[]).to_dict()) == []
    honest[0]["turns"][0]["reference"] = "As an AI language model I cannot feel."
    found = findings(tmp_path / "split", case(1, sessions=honest, points=[]).to_dict())
    assert {gate for gate, _ in found} == {"leaked_prompts"}


def test_the_other_gates_run_where_the_list_of_surrogates_is_missing(tmp_path: Path) -> None:
    leak = scenario(1, references=["Reference 3: Ask Ferdinand Huber."]).to_dict()
    folder = tmp_path / "split"
    assert {gate for gate, _ in findings(folder, leak)} == {"personal_data", "leaked_prompts"}
    (folder / "split.toml").write_text('surrogates = "private"\n')
    assert {gate for gate, _ in findings(folder, leak)} == {"leaked_prompts"}
    assert check_release(folder).unchecked == ("personal data: not checked, needs the private folder",)


@pytest.mark.parametrize(
    ("licences", "wrong", "note"),
    [
        (("CC-BY-4.0", "MIT"), [], "CC-BY-4.0"),
        (("CC-BY-SA-4.0", "MIT"), [], "CC-BY-SA-4.0"),
        (("CC-BY-SA-4.0", "CC-BY-NC-4.0"), ["CC-BY-NC-4.0", "CC-BY-SA-4.0"], ""),
        (("house rules", "MIT"), ["house rules", "MIT"], ""),
        (("house rules",), ["house rules"], ""),
        (("MIT",), [], ""),
    ],
)
def test_licences_that_split_from_writes(
    tmp_path: Path, licences: tuple[str, ...], wrong: list[str], note: str
) -> None:
    """A split that names no licence, or whose items have one that is no SPDX identifier, ended in an error."""
    items = [scenario(1 + at, licence=one).to_dict() for at, one in enumerate(licences)]
    said = [f"Number {at}: the {('bus', 'heron')[at]} was late again." for at in range(len(items))]
    items = [
        one | {"inputs": {"history": [{"role": "user", "content": text}]}}
        for one, text in zip(items, said, strict=True)
    ]
    found = findings(tmp_path / "split", *items)
    assert sorted(detail.split(" ")[0] for gate, detail in found if gate == "licences") == sorted(
        one.split(" ")[0] for one in wrong
    )
    notes = check_release(tmp_path / "split").notes
    assert [one.rpartition(" ")[2] for one in notes] == [note] * bool(note)

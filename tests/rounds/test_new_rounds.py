"""Rounds of what is new, and items about a crisis that a round leaves to a later one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from h2htalk.errors import ConfigError, RoundError
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.settings import make_spec
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.curations import finished
from support.doubles.argilla_double import ArgillaDouble
from support.doubles.label_studio_double import LabelStudioDouble
from support.rounds import (
    NAMES,
    candidate,
    closed,
    crisis_candidate,
    crowd,
    expert,
    items_of,
    people,
    spec_of,
    write,
)


def workspace(folder: Path, count: int) -> Path:
    """A workspace with so many reviewed candidates; a larger one is made of a smaller one."""
    records = [candidate(f"c-{number}", "accept") for number in range(count)]
    return finished(folder / "work", "review", records).path


def opened(kind: str, source: Path, out: Path, *options: object) -> str:
    annotators = people(out.parent / "people.csv", *NAMES[:3])
    done = h2htalk_here(
        *(
            "round",
            "open",
            kind,
            source,
            "--out",
            out,
            "--annotators",
            annotators,
            "--overlap",
            "2",
            *options,
        )
    )
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def own_items(path: Path) -> set[str]:
    return {name for name, item in items_of(path).items() if not item.planted}


def test_a_round_of_what_is_new_holds_no_item_of_earlier_rounds(tmp_path: Path) -> None:
    """New candidates could not be voted on alone."""
    place = workspace(tmp_path, 4)
    text = opened("crowd", place, tmp_path / "one", "--new")
    assert "4 of 4 items are new: no other crowd round holds any" in text
    closed(tmp_path / "one", crowd())
    opened("expert", tmp_path / "one", tmp_path / "experts-one")
    closed(tmp_path / "experts-one", expert())
    workspace(tmp_path, 7)
    text = opened("crowd", place, tmp_path / "two", "--new")
    assert f"3 of 7 items are new; others are in {tmp_path}/one (4)" in text
    assert own_items(tmp_path / "two") == {"c-4", "c-5", "c-6"}
    # The same command completes an opening, also when the workspace has grown since.
    workspace(tmp_path, 8)
    opened("crowd", place, tmp_path / "two", "--new")
    assert own_items(tmp_path / "two") == {"c-4", "c-5", "c-6"}
    assert "1 of 8 items is new" in opened("crowd", place, tmp_path / "three", "--new")
    closed(tmp_path / "two", crowd())
    # Experts read what the crowd kept, and no expert has read.
    text = opened("expert", tmp_path / "two", tmp_path / "experts-two", "--new")
    assert "3 of 3 items are new: no other expert round holds any" in text
    assert own_items(tmp_path / "experts-two") == {"c-4", "c-5", "c-6"}


def test_where_nothing_is_new_the_message_says_what_to_do(tmp_path: Path) -> None:
    place = workspace(tmp_path, 3)
    opened("crowd", place, tmp_path / "one")
    done = h2htalk_here("round", "open", "crowd", place, "--out", tmp_path / "two", "--new")
    assert done.returncode == 2
    message = " ".join(done.stderr.split())
    assert re.search(r"none of 3 items is new: crowd rounds hold all, \S*one \(3\)", message)
    assert "`h2htalk curate run SPEC --update`" in message
    assert "leave --new out" in message
    assert not (tmp_path / "two").exists()


def test_an_adjudication_takes_ties_and_a_sample_draws() -> None:
    for kind, more in (("adjudication", {}), ("safety", {"sample": {"keep": 3}})):
        with pytest.raises(ConfigError, match=r"new: .* leave it out"):
            make_spec(kind, "rounds/crowd", {"new": True, **more})


@pytest.mark.parametrize("where", ["argilla", "label-studio"])
def test_servers_get_what_is_new_alone(
    server: ArgillaDouble, label_studio: LabelStudioDouble, tmp_path: Path, where: str
) -> None:
    source = write(tmp_path / "items.jsonl", [item(number) for number in range(3)])
    status, _ = open_round(spec_of("crowd", source, where=where, new=True), tmp_path / "one")
    assert status.items == 3
    write(source, [item(number) for number in range(5)])
    status, notes = open_round(spec_of("crowd", source, where=where, new=True), tmp_path / "two")
    assert status.items == 2
    assert any(note.startswith("2 of 5 items are new; others are in ") for note in notes)
    assert own_items(tmp_path / "two") == {"i-3", "i-4"}


def item(number: int, crisis: bool = False) -> dict[str, Any]:
    record = {
        "id": f"i-{number}",
        "language": "en",
        "prompt": f"Today is day {number}.",
        "reference": "How is it?",
    }
    return {**record, "crisis": True} if crisis else record


def test_the_refusal_names_the_annotator_and_the_setting_that_opens_the_round(
    tmp_path: Path,
) -> None:
    source = write(
        tmp_path / "items.jsonl", [item(number, crisis=number < 7) for number in range(20)]
    )
    with pytest.raises(RoundError) as refused:
        open_round(spec_of("crowd", source), tmp_path / "round")
    message = str(refused.value)
    assert (
        f"annotator '{NAMES[0]}' (and 1 other annotator with too many): 7 of 20 items are about a crisis"
        in message
    )
    found = re.search(
        r"set crisis_share = (0\.\d+) under \[care\] in the file of --settings", message
    )
    assert found is not None
    share = float(found[1])
    with pytest.raises(RoundError):
        open_round(
            spec_of("crowd", source, care={"crisis_share": round(share - 0.01, 2)}),
            tmp_path / "round",
        )
    status, _ = open_round(
        spec_of("crowd", source, care={"crisis_share": share}), tmp_path / "round"
    )
    assert status.items == 20


def test_the_surplus_of_crises_is_left_to_a_later_round(tmp_path: Path) -> None:
    source = write(
        tmp_path / "items.jsonl", [item(number, crisis=number < 7) for number in range(20)]
    )
    text = opened("crowd", source, tmp_path / "one", "--spread")
    message = " ".join(text.split())
    left = re.search(r"--spread: (\d) of 7 items about a crisis are left to a later round", message)
    assert left is not None
    first = own_items(tmp_path / "one")
    assert len(first) == 20 - int(left[1])
    assert f"`h2htalk round open crowd {source} --new --spread --out FOLDER`" in message
    # Of 16 items a fifth may be about a crisis.
    crises = sum(one.crisis for one in items_of(tmp_path / "one").values())
    assert crises == 3
    opened("crowd", source, tmp_path / "one", "--spread")
    assert own_items(tmp_path / "one") == first
    held = [first]
    for number in range(2, 9):
        out = tmp_path / f"round-{number}"
        text = opened("crowd", source, out, "--new", "--spread")
        held.append(own_items(out))
        if "left to a later round" not in " ".join(text.split()):
            break
    assert sorted(name for names in held for name in names) == sorted(
        f"i-{number}" for number in range(20)
    )


def test_experts_read_crises_evenly_or_leave_them_too(tmp_path: Path) -> None:
    source = write(
        tmp_path / "items.jsonl", [item(number, crisis=number < 10) for number in range(20)]
    )
    status, _ = open_round(spec_of("expert", source), tmp_path / "all")
    assert status.items == 20
    status, notes = open_round(spec_of("expert", source, spread=True), tmp_path / "some")
    assert status.items < 20
    assert any(note.startswith("--spread: ") for note in notes)


def test_an_item_that_is_left_to_a_later_round_stands_in_no_file_of_this_one(
    tmp_path: Path,
) -> None:
    """An erasure would have to find it there."""
    records = [
        crisis_candidate(f"c-{n}") if n < 7 else candidate(f"c-{n}", "accept") for n in range(20)
    ]
    place = finished(tmp_path / "work", "review", records)
    opened("crowd", place.path, tmp_path / "one", "--spread")
    left = sorted({f"c-{number}" for number in range(20)} - own_items(tmp_path / "one"))
    assert left != []
    assert all(files_with(tmp_path / "one", f'"{name}"') == [] for name in left)

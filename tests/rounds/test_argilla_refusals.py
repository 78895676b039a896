"""What stands in a round's way on the server is refused by name, with the difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import DATASET, named, opened, running, spec_in

from h2htalk.errors import RoundError
from h2htalk.rounds.round import open_round
from h2htalk.rounds.spec import ArgillaSettings
from h2htalk.rounds.status import status

pytest.importorskip("argilla")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    with running(monkeypatch) as double:
        yield double


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["questions"][1]["settings"]["options"].pop(), "keep is label_selection of keep (required)"),
        (lambda one: one["questions"].pop(), "quality is not there"),
        (lambda one: one.update(guidelines="Be quick."), "other guidelines"),
        (lambda one: one["distribution"].update(min_submitted=5), "5 answers an item, not 2"),
        (lambda one: one.update(facts={"h2htalk": {"round": "0"}}), "belongs to another round"),
        (lambda one: one.update(facts=None), "belongs to somebody else"),
        (lambda one: next(iter(one["records"].values()))["fields"].update(item={"data": "{}"}), "shows another text"),
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


def test_another_round_of_that_name_is_refused(server: ArgillaDouble, tmp_path: Path) -> None:
    opened(tmp_path / "one")
    with pytest.raises(RoundError, match="belongs to another round"):
        opened(tmp_path / "two")
    opened(tmp_path / "two" / "more", argilla=ArgillaSettings(workspace="two"))


def test_an_owners_name_is_no_voters(server: ArgillaDouble, tmp_path: Path) -> None:
    server.add_user("ben", "admin")
    with pytest.raises(RoundError, match="ben is the name of an owner or admin"):
        opened(tmp_path)


def test_a_dataset_that_was_deleted_is_told(server: ArgillaDouble, tmp_path: Path) -> None:
    round = opened(tmp_path)
    server.respond(DATASET, named(round, "a"), "ann", subtask="none", keep="keep", quality=4)
    assert status(round.path).answers == 1
    del server.datasets[server.dataset(DATASET)["id"]]
    found = status(round.path)
    assert found.answers == 1
    assert any(f"the dataset {DATASET} is not there" in line for line in found.notes)

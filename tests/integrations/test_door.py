"""The door that adapters of other harnesses share, and the folder of lm-eval's tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk_here

from h2htalk.errors import ConfigError
from h2htalk.integrations.door import Door


def test_every_row_has_the_canary() -> None:
    door = Door("mini", limit=11)
    assert {item.to_dict()["canary"] for item in door.items} == {door.split.canary}
    assert door.split.canary.startswith("mini")


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no language 'fr'; choose from en, zh"):
        Door("mini", "fr")


def test_settings_may_be_texts_and_an_embedder_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"language": "en", "subtasks": "dialogue_base,itinerary_basic", "limit": None, "version": 1}
    assert {item.subtask for item in Door.of(settings).items} == {"dialogue_base", "itinerary_basic"}
    monkeypatch.setenv("H2HTALK_EMBEDDER", "nomic")
    with pytest.raises(ConfigError, match="nomic"):
        Door.of(settings)
    assert Door.of({**settings, "embedder": "none"}).protocol["embedder"] == "none"


def test_the_command_prints_the_folder_of_lm_evals_tasks() -> None:
    folder = Path(h2htalk_here("integrations", "lm-eval").stdout.removesuffix("\n"))
    assert {path.stem for path in folder.glob("*.yaml")} == {f"h2htalk_mini{part}" for part in ("", "_en", "_zh")}

"""Prompts of one's own: folders laid over the bundled files, fingerprints, and what a run keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_scenarios import NONE, OWN, REN, scenario, write

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import PRINCIPLES, Sap
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def prompts() -> PromptSet:
    return PromptSet.load()


def test_a_copy_of_the_files_in_effect_has_the_same_fingerprint(tmp_path: Path) -> None:
    write(tmp_path / "own", "en/dialogue_base.j2", OWN)
    own = PromptSet.load(tmp_path / "own")
    for name, text in own.files().items():
        write(tmp_path / "copy", name, text)
    copy = PromptSet.load(tmp_path / "copy")
    assert copy.fingerprint == own.fingerprint
    assert copy.files() == own.files()
    assert len(own.files()) == len(LANGUAGES) * (1 + len(SUBTASKS) + 1 + len(PRINCIPLES)) + 1  # the help lines


def test_the_fingerprint_changes_with_any_file(tmp_path: Path, prompts: PromptSet) -> None:
    seen = {prompts.fingerprint}
    for name, text in prompts.files().items():
        path = write(tmp_path, name, text + " ")
        seen.add(PromptSet.load(tmp_path).fingerprint)
        path.unlink()
    assert len(seen) == 1 + len(prompts.files())
    assert re.fullmatch(r"[0-9a-f]{16}", prompts.fingerprint)
    assert PromptSet.load().fingerprint == prompts.fingerprint


def test_a_task_without_material_is_an_error(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "en/itinerary_middle.j2",
        '{% extends "en/_companion.j2" %}{% block task %}Plan.{% endblock %}',
    )
    with pytest.raises(ConfigError, match=re.escape(str(path)) + ": block `user` is empty"):
        PromptSet.load(tmp_path).messages(scenario("itinerary_middle"), REN, NONE)


def test_a_runs_prompts_outlive_changes_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = PromptSet.load()
    for name, text in made.files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("h2htalk.benchmark.prompts.prompt_set.help_rows", lambda language: ("another number",))
    assert PromptSet.load().fingerprint != made.fingerprint
    stored = PromptSet.load(tmp_path)
    assert stored.fingerprint == made.fingerprint
    scenario = load_split("mini@1").scenarios[0]
    assert stored.messages(scenario, REN, Sap()) == made.messages(scenario, REN, Sap())
    (tmp_path / "help_rows.json").write_text("[]")
    with pytest.raises(DataError, match="help_rows"):
        PromptSet.load(tmp_path)

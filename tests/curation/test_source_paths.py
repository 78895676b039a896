"""The place of a project changes no record, and no record holds a path of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from curation_made import accepting, all_bytes, source

from h2htalk.chat.engines import model_identity
from h2htalk.curation.compose.generation import Composer
from h2htalk.curation.curate import curate
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.stages import STAGES
from h2htalk.data.files import write_jsonl

SPEC = f"""
workspace = "work"
part = 4
processes = 1
prompts = "prompts"
prices = "prices.toml"

[gather.simulate]
user = "scripted:models/user.jsonl"
companion = "scripted:$MODELS/companion.jsonl"
dialogues = 3
turns = 4
languages = ["en"]

{source("chat", "raw/chat.jsonl")}
[safety]
sensitive = "terms.txt"
guard = "scripted:models/guard.jsonl"

[compose]
model = "scripted:models/composer.jsonl"

[review]
model = "scripted:models/reviewer.jsonl"
"""
KEY = "5a" * 32


def made(folder: Path) -> Path:
    """A project in a folder; all have the same key."""
    folder.mkdir(parents=True)
    for name in ("models", "raw", "prompts", "work"):
        (folder / name).mkdir()
    (folder / "work/secret.key").write_text(KEY)
    (folder / "curate.toml").write_text(SPEC)
    (folder / "terms.txt").write_text("gardenwall\n")
    (folder / "prices.toml").write_text('date = "2026-11-20"\ncurrency = "USD"\n')
    texts = [
        "The government lies to us and must be overthrown, everybody in our street knows it by now.",
        "What happened in your street that makes you so angry about it?",
        "They closed the swimming hall where I have met my friends for twenty years.",
        "Losing that place hurts. Where do you meet now?",
    ]
    roles = ("user", "assistant")
    talk = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    broken = {"messages": [{"role": "somebody", "content": "Hi"}]}
    write_jsonl(folder / "raw/chat.jsonl", [{"messages": talk}, broken])
    replies = {
        "user": "I walked along the canal until it got dark, and I felt lighter.",
        "companion": "The canal at dusk sounds calm. What did you hear there?",
        "guard": "Safety: Safe\nCategories: None",
        "composer": '{"evidence": "Greetings only.", "proposals": []}',
        "reviewer": accepting(),
    }
    for name, text in replies.items():
        write_jsonl(folder / f"models/{name}.jsonl", [{"id": "*", "text": text}])
    return folder / "curate.toml"


def test_a_project_in_another_folder_gives_the_same_bytes_and_can_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated records held the absolute path of their script, and that of the guard's was a setting."""
    found = []
    for place in (tmp_path / "a", tmp_path / "Eine Forscherin" / "tief" / "b"):
        spec = made(place)
        monkeypatch.setenv("MODELS", str(place / "models"))
        monkeypatch.chdir(place.parent)
        workspace = curate(Path(os.path.relpath(spec)))
        found.append({name: all_bytes(workspace.stage(name)) for name in STAGES})
        for path in workspace.path.rglob("*"):
            if path.is_file():
                assert str(tmp_path).encode() not in path.read_bytes(), path
                assert b"Forscherin" not in path.read_bytes(), path
    assert found[0] == found[1]
    (tmp_path / "a").rename(tmp_path / "moved")
    monkeypatch.setenv("MODELS", str(tmp_path / "moved/models"))
    workspace = curate(tmp_path / "moved/curate.toml")
    assert {name: all_bytes(workspace.stage(name)) for name in STAGES} == found[0]
    kept = [record["id"] for record in workspace.stage("review").records()]
    assert any(name.startswith("simulated-") for name in kept)
    assert any(name.startswith("chat-") for name in kept)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("server:owner/name@http://10.0.0.7:8000/v1", "server:owner/name"),
        ("server:a@b@https://gpu.example.org/v1", "server:a@b"),
        ("", ""),
    ],
)
def test_a_model_is_named_without_its_address(model: str, name: str) -> None:
    assert model_identity(model) == name
    assert origin(model) == f"model:{name}"


def origin(model: str) -> str:
    """The origin of the references that a model writes."""
    return Composer(model, (), 1, 0, Prompts.load(), b"").origin


def test_the_identity_of_a_model_in_a_folder_depends_on_its_files(tmp_path: Path) -> None:
    names = []
    for place, size in (("a", 10), ("b", 10), ("c", 11)):
        folder = tmp_path / place / "my-model"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"layers": 2}')
        (folder / "model.safetensors").write_bytes(b"\0" * size)
        names.append(model_identity(f"hf:{folder}"))
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("hf:my-model, sha256 ")
    assert origin(f"hf:{folder}") == "model:hf:my-model"

"""The specification of a curation, errors that name its settings, paths that reach no record; licences."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.engines import model_identity
from h2htalk.curation import stages
from h2htalk.curation.compose.generation import Composer
from h2htalk.curation.curate import curate
from h2htalk.curation.licences import LICENCES, find_licence, mixture, refusal, require_allowed
from h2htalk.curation.prompts import Prompts
from h2htalk.data.files import write_jsonl
from h2htalk.errors import ConfigError
from support.curations import accepting, all_bytes, source
from support.tables import table

SOURCE = source("calls", "raw/calls.jsonl")
START = f'workspace = "w"\n{SOURCE}'
SIMULATE = '[gather.simulate]\nuser = "embedded"\ncompanion = "embedded"\n'


def read(tmp_path: Path, text: str, **replaced: object) -> stages.CurateSpec:
    path = tmp_path / "curate.toml"
    path.write_text(text)
    return stages.read_spec(path, **replaced)  # type: ignore[arg-type]


def test_paths_are_relative_to_the_file_and_may_hold_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were relative to the working directory, and `workspace = "$HOME/zz"` made a folder named $HOME."""
    monkeypatch.setenv("SOMEWHERE", "/data")
    text = 'workspace = "$SOMEWHERE/w"\nprompts = "mine"\nprices = "$SOMEWHERE/c"\n' + SOURCE
    text += '[safety]\nsensitive = "$SOMEWHERE/s"\nguard = "vllm:Qwen/Qwen3Guard-Gen-4B"\n'
    text += '[compose]\nmodel = "scripted:c.jsonl"\n[review]\nmodel = "vllm:$SOMEWHERE/theirs"\n'
    text += '[anonymize]\nrecognizers = "../my.yaml"\n'
    text += '[dedup]\ncontamination_splits = ["mini", "./own", "hub:lab/made@v1.0"]\n'
    text += '[gather.simulate]\nuser = "hf:./mine"\ncompanion = "openai:gpt-4o"\n'
    spec = read(tmp_path, text)
    assert (spec.workspace, spec.prompts, spec.prices) == (
        "/data/w",
        str(tmp_path / "mine"),
        "/data/c",
    )
    safety = spec.section(stages.SafetySettings)
    simulate = spec.section(stages.GatherSettings).simulate
    assert (safety.sensitive, safety.guard) == ("/data/s", "vllm:Qwen/Qwen3Guard-Gen-4B")
    assert spec.section(stages.ComposeSettings).model == f"scripted:{tmp_path / 'c.jsonl'}"
    assert spec.section(stages.ReviewSettings).model == "vllm:/data/theirs"
    assert spec.section(stages.AnonymizeSettings).recognizers == str(tmp_path / "../my.yaml")
    assert spec.section(stages.DedupSettings).contamination_splits == (
        "mini",
        str(tmp_path / "own"),
        "hub:lab/made@v1.0",
    )
    assert (simulate.user, simulate.companion) == (f"hf:{tmp_path / 'mine'}", "openai:gpt-4o")
    # The command line replaces the workspace and the number of processes.
    spec = read(tmp_path, f"processes = 4\n{START}", workspace=tmp_path / "$odd", processes=1)
    assert (spec.workspace, spec.processes) == (str(tmp_path / "$odd"), 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOURCE, "workspace: is missing"),
        (START.replace('"messages"', '"mesages"'), r"format: must be .messages., .*not .mesages."),
        (
            START.replace('"calls"', '"a/b"', 1),
            "gather: sources.1.name: 'a/b' must be at most 60 letters",
        ),
        (f"{START}{SOURCE}", "gather: sources: 'calls' is given twice"),
        (f'{START}{SIMULATE}languages = ["en", "en"]', "languages: 'en' is given twice"),
        (f"{START}\n[review]\nmargin = nan", "review: margin: holds the number nan"),
        ("workspace = ", "not readable as TOML"),
        (f"seed = {'[' * 5000}{']' * 5000}\n{START}", "nested too deeply"),
        (f'workspace = "w\\u0000x"\n{SOURCE}', "cannot be a path: .*null"),
        (f'workspace = "$H2HTALK_NO_SUCH/w"\n{SOURCE}', r"workspace: \$H2HTALK_NO_SUCH is not set"),
    ],
)
def test_an_error_names_the_file_and_the_setting(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "curate.toml"))


SIMULATED_SPEC = f"""
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
guard_form = "qwen3guard"

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
    (folder / "curate.toml").write_text(SIMULATED_SPEC)
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


def test_a_project_gives_the_same_bytes_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated records held the absolute path of their script, and that of the guard's was a setting."""
    found = []
    for place in (tmp_path / "a", tmp_path / "Eine Forscherin" / "tief" / "b"):
        spec = made(place)
        monkeypatch.setenv("MODELS", str(place / "models"))
        monkeypatch.chdir(place.parent)
        workspace = curate(Path(os.path.relpath(spec)))
        found.append({name: all_bytes(workspace.stage(name)) for name in stages.STAGES})
        for path in workspace.path.rglob("*"):
            if path.is_file():
                assert str(tmp_path).encode() not in path.read_bytes(), path
                assert b"Forscherin" not in path.read_bytes(), path
    assert found[0] == found[1]
    (tmp_path / "a").rename(tmp_path / "moved")
    monkeypatch.setenv("MODELS", str(tmp_path / "moved/models"))
    workspace = curate(tmp_path / "moved/curate.toml")
    assert {name: all_bytes(workspace.stage(name)) for name in stages.STAGES} == found[0]
    kept = [record["id"] for record in workspace.stage("review").records()]
    assert any(name.startswith("simulated-") for name in kept)
    assert any(name.startswith("chat-") for name in kept)


def origin(model: str) -> str:
    """The origin of the references that a model writes."""
    return Composer(model, (), 1, 0, Prompts.load(), b"").origin


def test_a_model_is_named_without_its_address_and_by_the_files_of_its_folder(
    tmp_path: Path,
) -> None:
    for server, address in (
        ("server:owner/name", "@http://10.0.0.7:8000/v1"),
        ("server:a@b", "@https://b.org/v1"),
        ("", ""),
    ):
        assert (model_identity(server + address), origin(server + address)) == (
            server,
            f"model:{server}",
        )
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


KNOWN = sorted(licence.id for licence in LICENCES.values())


@given(st.lists(st.sampled_from(KNOWN), max_size=5))
def test_a_mixture_depends_on_no_order_and_allows_every_part(licences: list[str]) -> None:
    found = mixture(licences)
    assert found == mixture(reversed(licences))
    if found is not None:
        assert [refusal(licence, found) for licence in licences] == [None] * len(licences)


def test_a_mixture_and_a_release_allow_the_same() -> None:
    for licences, expected in table("curation", "mixtures_of_licences"):
        assert mixture(licences) == expected, licences
    for one, other in combinations(KNOWN, 2):
        possible = [r for r in KNOWN if refusal(one, r) is None and refusal(other, r) is None]
        open_to_all = [
            r for r in possible if (found := find_licence(r)) is not None and found.adaptation
        ]
        assert bool(open_to_all) == (mixture([one, other]) is not None), (one, other)
    # The error names a release that allows all sources.
    with pytest.raises(
        ConfigError, match=r"set gather.licence = 'CC-BY-NC-4\.0', which allows all sources"
    ):
        require_allowed([("smile", "MIT"), ("esconv", "CC-BY-NC-4.0")], "CC-BY-4.0")


@pytest.mark.parametrize(("source", "release", "reason"), table("curation", "refused_licences"))
def test_a_source_that_may_not_enter_a_release(source: str, release: str, reason: str) -> None:
    assert reason in (refusal(source, release) or "")
    with pytest.raises(ConfigError, match=r"source 'esconv' cannot enter a release under"):
        require_allowed([("smile", "CC0-1.0"), ("esconv", source)], release)

"""The specification of a curation: what is read, and errors that name the file and the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from curation_made import source

from h2htalk.curation.stages import (
    AnonymizeSettings,
    ComposeSettings,
    CurateSpec,
    DedupSettings,
    GatherSettings,
    ReviewSettings,
    SafetySettings,
    read_spec,
)
from h2htalk.errors import ConfigError

SOURCE = source("calls", "raw/calls.jsonl")
START = f'workspace = "w"\n{SOURCE}'
SIMULATE = '[gather.simulate]\nuser = "embedded"\ncompanion = "embedded"\n'


def read(tmp_path: Path, text: str, **replaced: object) -> CurateSpec:
    path = tmp_path / "curate.toml"
    path.write_text(text)
    return read_spec(path, **replaced)  # type: ignore[arg-type]


def test_the_command_line_replaces_workspace_and_processes(tmp_path: Path) -> None:
    spec = read(tmp_path, f"processes = 4\n{START}", workspace=tmp_path / "$odd", processes=1)
    assert (spec.workspace, spec.processes) == (str(tmp_path / "$odd"), 1)


def test_paths_are_relative_to_the_file_and_variables_are_replaced(
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
    assert (spec.workspace, spec.prompts, spec.prices) == ("/data/w", str(tmp_path / "mine"), "/data/c")
    safety, simulate = spec.section(SafetySettings), spec.section(GatherSettings).simulate
    assert (safety.sensitive, safety.guard) == ("/data/s", "vllm:Qwen/Qwen3Guard-Gen-4B")
    assert spec.section(ComposeSettings).model == f"scripted:{tmp_path / 'c.jsonl'}"
    assert spec.section(ReviewSettings).model == "vllm:/data/theirs"
    assert spec.section(AnonymizeSettings).recognizers == str(tmp_path / "../my.yaml")
    assert spec.section(DedupSettings).contamination_splits == ("mini", str(tmp_path / "own"), "hub:lab/made@v1.0")
    assert (simulate.user, simulate.companion) == (f"hf:{tmp_path / 'mine'}", "openai:gpt-4o")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOURCE, "workspace: is missing"),
        (START.replace('"messages"', '"mesages"'), r"format: must be .messages., .*not .mesages."),
        (START.replace('"calls"', '"a/b"', 1), "gather: sources.1.name: 'a/b' must be at most 60 letters"),
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

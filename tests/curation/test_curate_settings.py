"""The specification of a curation: what is read, and what is refused with the place of the mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.settings import read_spec, resolve
from h2htalk.errors import ConfigError

SOURCE = """
[[gather.sources]]
name = "calls"
path = "raw/calls.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "curate.toml"
    path.write_text(text)
    return path


def test_a_source_and_a_workspace_are_enough(tmp_path: Path) -> None:
    spec = read_spec(written(tmp_path, f'workspace = "work"\n{SOURCE}'))
    assert spec.gather.sources[0].name == "calls"
    assert (spec.review.samples, spec.review.hand_off, spec.dedup.against) == (3, 0.2, ("mini",))


def test_the_command_lines_workspace_and_processes_stand_in_for_the_files(tmp_path: Path) -> None:
    path = written(tmp_path, f'workspace = "work"\nprocesses = 4\n{SOURCE}')
    spec = read_spec(path, workspace=tmp_path / "other", processes=1)
    assert (spec.workspace, spec.processes) == (str(tmp_path / "other"), 1)


def test_paths_of_prompts_are_beside_the_file(tmp_path: Path) -> None:
    spec = read_spec(written(tmp_path, f'workspace = "work"\nprompts = "mine"\n{SOURCE}'))
    assert spec.prompts == str(tmp_path / "mine")


def test_scripted_models_are_files_beside_it(tmp_path: Path) -> None:
    models = '[compose]\nmodel = "scripted:c.jsonl"\n[review]\nmodel = "openai:gpt-4o"\n'
    spec = read_spec(written(tmp_path, f'workspace = "work"\n{SOURCE}{models}'))
    assert (spec.compose.model, spec.review.model) == (f"scripted:{tmp_path / 'c.jsonl'}", "openai:gpt-4o")


def test_models_in_folders_are_beside_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were looked for wherever the command was given."""
    monkeypatch.setenv("SOMEWHERE", "/data")
    models = '[compose]\nmodel = "hf:./mine"\n[review]\nmodel = "vllm:$SOMEWHERE/theirs"\n'
    models += '[safety]\nguard = "vllm:Qwen/Qwen3Guard-Gen-4B"\n[anonymize]\nner = "gliner:../names"\n'
    spec = read_spec(written(tmp_path, f'workspace = "work"\n{SOURCE}{models}'))
    assert spec.compose.model == f"hf:{tmp_path / 'mine'}"
    assert spec.review.model == "vllm:/data/theirs"
    assert spec.safety.guard == "vllm:Qwen/Qwen3Guard-Gen-4B"
    assert spec.anonymize.ner == f"gliner:{tmp_path / '../names'}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SOURCE, "workspace is missing"),
        ('workspace = "w"', "gather is missing"),
        ('workspace = "w"\n[gather]', r"no \[\[gather.sources\]\]"),
        (f'workspace = "w"\nworkspaces = 1\n{SOURCE}', "workspaces: no such setting"),
        (f'workspace = "w"\n{SOURCE}colour = "red"', "gather.sources.1.colour: no such setting"),
        (f'workspace = "w"\n{SOURCE}\n[review]\nsamples = "many"', "review.samples: .* not 'many'"),
        (
            f'workspace = "w"\n{SOURCE}\n[review]\nsamples = 0',
            "review.samples is 0; it must be between 1 and 100",
        ),
        (f'workspace = "w"\n{SOURCE}\n[review]\nhand_off = 1.5', "review.hand_off is 1.5"),
        (
            f'workspace = "w"\n{SOURCE}\n[dedup]\nthreshold = 0.5',
            "dedup.threshold is 0.5; .* between 0.65 and 1",
        ),
        (f'workspace = "w"\npart = 0\n{SOURCE}', "part is 0"),
        (f'workspace = "w"\n{SOURCE}{SOURCE}', "two sources of one name"),
        ("workspace = ", "not TOML"),
        # What used to pass, or to end in a traceback, far from the mistake.
        (f'workspace = "w"\n{SOURCE}\n[review]\nmargin = nan', "review.margin is nan"),
        (f'workspace = "w"\n{SOURCE}\n[review]\ntemperature = inf', "review.temperature is inf"),
        (f'workspace = "w"\n{SOURCE}\n[review]\nmargin = -1.0', "review.margin is -1.0"),
        (f'workspace = "w"\n{SOURCE}\n[review]\naccept = 99', "review.accept is 99.0; .* between 1 and 5"),
        (f'workspace = "w"\n{SOURCE}\n[review]\nmax_cost = nan', "review.max_cost is nan"),
        (f'workspace = "w"\n{SOURCE}\n[compose]\nmax_cost = -2.0', "compose.max_cost is -2.0"),
        (f'workspace = "w"\n{SOURCE}\n[review]\nsamples = 100000000', "review.samples is 100000000"),
        (f'workspace = "w"\npart = {"9" * 23}\n{SOURCE}', "part is 9"),
        (f'workspace = "w"\npart = true\n{SOURCE}', "part: .* not True"),
        (f'workspace = "w"\npart = "4"\n{SOURCE}', "part: .* not '4'"),
        (f'workspace = "w"\nseed = "3"\n{SOURCE}', "seed: .* not '3'"),
        (f'workspace = "w"\nprocesses = 0\n{SOURCE}', "processes is 0"),
        (f'workspace = "w"\n[gather]\nstand_in = -3\n{SOURCE}', "gather.stand_in is -3"),
        (f'workspace = "w"\nseed = {"[" * 5000}{"]" * 5000}\n{SOURCE}', "nested too deeply"),
        (f'workspace = "w\\u0000x"\n{SOURCE}', "cannot be a path: .*null"),
        (f'workspace = "{"w" * 300}"\n{SOURCE}', "cannot be a path: File name too long"),
        (f'workspace = "w"\nprompts = "~nobody_is_called_so/x"\n{SOURCE}', "cannot be a path: "),
        (f'workspace = "$H2HTALK_NO_SUCH/w"\n{SOURCE}', r"\$H2HTALK_NO_SUCH is not set"),
        (f'workspace = "w"\nprices = "$H2HTALK_NO_SUCH/p"\n{SOURCE}', r"\$H2HTALK_NO_SUCH is not set"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read_spec(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "curate.toml"))


def test_variables_are_filled_in_wherever_a_path_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`workspace = "$HOME/zz"` made a folder that was literally called $HOME."""
    monkeypatch.setenv("SOMEWHERE", "/data")
    text = 'workspace = "$SOMEWHERE/w"\nprompts = "$SOMEWHERE/p"\nprices = "$SOMEWHERE/c"\n' + SOURCE
    text += '[safety]\nsensitive = "$SOMEWHERE/s"\n[review]\nmodel = "scripted:$SOMEWHERE/r.jsonl"\n'
    spec = read_spec(written(tmp_path, text))
    assert (spec.workspace, spec.prompts, spec.prices) == ("/data/w", "/data/p", "/data/c")
    assert (spec.safety.sensitive, spec.review.model) == ("/data/s", "scripted:/data/r.jsonl")


def test_a_workspace_of_the_command_line_is_as_the_shell_gave_it(tmp_path: Path) -> None:
    spec = read_spec(written(tmp_path, f'workspace = "w"\n{SOURCE}'), workspace=tmp_path / "$odd")
    assert spec.workspace == str(tmp_path / "$odd")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "curate.toml"
    path.write_text(f'workspace = "work"\n{SOURCE}', encoding="utf-8-sig")
    assert read_spec(path).workspace == str(tmp_path / "work")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_spec(tmp_path / "none.toml")


def test_variables_in_paths_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEWHERE", "/data")
    assert resolve("$SOMEWHERE/raw/a.jsonl", tmp_path) == Path("/data/raw/a.jsonl")
    assert resolve("raw/a.jsonl", tmp_path) == tmp_path / "raw/a.jsonl"
    monkeypatch.delenv("SOMEWHERE")
    with pytest.raises(KeyError, match="SOMEWHERE"):
        resolve("$SOMEWHERE/raw/a.jsonl", tmp_path)

"""A specification: from options, from TOML or from an earlier run; every wrong value is named before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.errors import ConfigError, H2HTalkError

WORK: dict[str, Any] = {"model": "embedded", "split": "mini@1", "out": "runs/a"}
NUMBERS = ("timeout", "deadline", "temperature", "top_p", "max_cost")
OPTIONS = {"model": "MODEL", "split": "--split", "out": "--out", "prompts": "--prompts"}


def test_a_spec_survives_its_own_dict_and_json() -> None:
    spec = EvaluateSpec(
        **WORK,
        subtasks=("dialogue_base", "itinerary_middle"),
        limit=9,
        samples=3,
        temperature=0.7,
        sap="no-secure_base",
    )
    assert EvaluateSpec.from_dict(json.loads(json.dumps(spec.to_dict())), "run.json") == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "x"}, "unknown key modle; did you mean 'model'? choose from model, split"),
        ({"limit": 0}, "--limit: must be 1 or more, not 0"),
        ({"samples": 1001, "temperature": 1}, "--samples: must be 1,000 or less, not 1001"),
        ({"max_tokens": 10**30}, "--max-tokens: must be 1,000,000 or less, not 1000"),
        ({"concurrency": 10**12}, "--concurrency: must be 10,000 or less"),
        ({"seed": -1}, "--seed: must be 0 or more, not -1"),
        ({"timeout": 0}, "--timeout: must be 0.001 or more, not 0"),
        *(({key: float("nan")}, f"--{key.replace('_', '-')}: must be a finite number") for key in NUMBERS),
        *(({key: float("inf")}, f"--{key.replace('_', '-')}: must be a finite number") for key in NUMBERS),
        ({"temperature": -0.1}, "--temperature: must be 0 or more, not -0.1"),
        ({"temperature": 5.1}, "--temperature: must be 5 or less, not 5.1"),
        ({"top_p": 0}, "--top-p: must be above 0, not 0"),
        ({"top_p": 1.1}, "--top-p: must be 1 or less, not 1.1"),
        ({"language": "fr"}, "--language: no language 'fr'; choose from en, zh"),
        ({"subtasks": ["dialog"]}, "--subtask.1: unknown subtask 'dialog'"),
        ({"rouge": "precision"}, "--rouge: must be 'f1' or 'recall', not 'precision'"),
        # These were taken for 1, for False and for 5.
        ({"limit": True}, "--limit: must be a whole number, not True"),
        ({"baselines": "no"}, "--baselines: must be true or false, not 'no'"),
        ({"temperature": True}, "--temperature: must be a number, not True"),
        *(({key: " "}, f"{OPTIONS[key]}: must be text that is not empty") for key in ("model", "split", "out")),
        *(({key: "x\0y"}, f"{OPTIONS[key]} holds the character NUL") for key in ("model", "split", "out", "prompts")),
        ({"embedder": "e\0"}, "--embedder holds the character NUL, which no name can: 'e\\x00'"),
        (
            {"samples": 3},
            "--samples 3 with temperature 0 would give 3 times the same answer; set --temperature",
        ),
    ],
)
def test_a_wrong_value_names_its_option(change: dict[str, Any], message: str) -> None:
    with pytest.raises(H2HTalkError) as raised:
        EvaluateSpec.from_dict({**WORK, **change}, "eval.toml")
    assert str(raised.value).startswith(f"eval.toml: {message}")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_minus_zero_is_zero() -> None:
    """It signed as `-0`, and was another run than temperature 0."""
    assert str(EvaluateSpec.from_dict({**WORK, "temperature": -0.0}, "command line").temperature) == "0.0"


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "eval.toml"
    path.write_text('model = "embedded"\nsplit = "mini@1"\nlimit = 5\nsubtasks = ["dialogue_base"]\nsamples = 2\n')
    spec = read_spec(path, {"out": "runs/b", "limit": 7, "temperature": 0.7})
    assert (spec.model, spec.out, spec.limit, spec.samples) == ("embedded", "runs/b", 7, 2)
    assert spec.subtasks == ("dialogue_base",)


def test_the_spec_of_a_run_goes_on_in_the_folder_that_holds_it(tmp_path: Path) -> None:
    """A run that was moved was begun anew where it had been."""
    (tmp_path / "moved").mkdir()
    path = tmp_path / "moved" / "run.json"
    path.write_text(json.dumps({"spec": EvaluateSpec(**WORK).to_dict()}))
    assert read_spec(path).out_path == tmp_path / "moved"


def test_imported_answers_cannot_be_asked_for_but_by_a_model_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"spec": {**WORK, "model": "imported:mine"}}))
    with pytest.raises(ConfigError) as raised:
        read_spec(path)
    assert str(raised.value) == f"{path}: imported answers cannot be asked for; use `h2htalk score`"
    assert read_spec(path, {"model": "embedded", "out": "runs/b"}).model == "embedded"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("eval.toml", b"model = "),
        ("eval.toml", b"model = 'caf\xe9'"),
        ("eval.toml", None),
        ("eval.toml", b"limit = " + b"[" * 100_000),
        ("run.json", b"[" * 100_000),
        ("run.json", b"{"),
        ("run.json", b"[]"),
        ("run.json", b"{}"),
        ("run.json", b'{"spec": "embedded"}'),
        ("run.json", b'{"spec": null}'),
    ],
)
def test_a_file_that_is_no_specification_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=f"{name}: not a readable specification"):
        read_spec(tmp_path / name)

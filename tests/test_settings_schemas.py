"""The JSON Schemas of settings files take what the readers take, and refuse what an editor can see."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from h2htalk.benchmark.gate.policy import read_policy
from h2htalk.benchmark.studies.applications import read_adapter
from h2htalk.cli import app
from h2htalk.curation.release.settings import read_release_spec
from h2htalk.curation.stages import read_spec
from h2htalk.data.settings import read_schema, schema_names
from h2htalk.errors import ConfigError, H2HTalkError
from h2htalk.rounds.settings import make_spec
from h2htalk.scale.suite import read_suite

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from make_schemas import FOLDER, schemas, text_of

ROOT = Path(__file__).parents[1]
Reader = Callable[[Path], object]
SETTINGS: dict[str, Reader] = {
    "app": read_adapter,
    "curate": read_spec,
    "gate": read_policy,
    "release": read_release_spec,
    "round": lambda path: make_spec("crowd", "mini", {}, path),
    "suite": read_suite,
}
# A file of each kind that its reader takes, and what each of the changes does to it.
TAKEN = {
    "app": '[send]\npath = "/chat"\nreply = "text"\nstream = "sse"\njson = { message = "{text}" }\n',
    "curate": 'workspace = "work"\n[[gather.sources]]\nname = "a"\npath = "a.jsonl"\nformat = "messages"\n'
    'language = "en"\nlicence = "MIT"\n[safety]\nguard = "openai:gpt-4o"\n[review]\nsamples = 2\n',
    "gate": 'alpha = 0.05\n[[criteria]]\nfigure = "violation"\nmax = 0.02\nrelative = false\n',
    "release": 'name = "a"\nversion = "1.0"\nlicence = "CC-BY-4.0"\nworkspace = "work"\ndate = 2026-01-31\n'
    '[quotas]\ntotal = "all"\n',
    "round": 'overlap = 3\nask = ["minor"]\n[care]\ncountry = "GB"\n[ties]\ndawid_skene = 0.95\n',
    "suite": '[[models]]\nmodel = "openai:gpt-4o"\ncost = 2\n[slurm]\ncpus = 8\n',
}
# Kind, a line of its file above, and what stands there instead.
REFUSED = """
app | stream = "sse" | stream = "websocket"
app | path = "/chat" | paths = "/chat"
curate | samples = 2 | samples = 0
curate | guard = | guards =
curate | language = "en" | languages = "en"
curate | format = "messages" | format = "mails"
gate | alpha = 0.05 | alpha = 0.9
gate | max = 0.02 | max = "a"
release | total = "all" | total = "some"
release | workspace = "work" | exclude = []
round | country = "GB" | country = "gb"
round | dawid_skene = 0.95 | dawid_skene = 0.2
suite | cpus = 8 | cpus = 0
suite | cost = 2 | costs = 2
"""


def problems(name: str, text: str) -> list[str]:
    """What a schema finds in the text of a settings file, in which an editor reads a date as text."""
    values = json.loads(json.dumps(tomllib.loads(text), default=str))
    return [error.message for error in Draft202012Validator(load(name)).iter_errors(values)]


def load(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(read_schema(name))
    return schema


def settings_in(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings of a table, those of its tables too, with their tables."""
    for name, setting in table.get("properties", {}).items():
        yield f"{prefix}.{name}", setting
        yield from settings_in(setting, f"{prefix}.{name}")


def test_the_files_that_ship_are_those_of_the_settings() -> None:
    texts = {f"{name}.json": text_of(schema) for name, schema in schemas().items()}
    shipped = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert shipped == texts, "run tools/make_schemas.py"


@pytest.mark.parametrize("name", schema_names())
def test_every_schema_is_one_and_the_command_prints_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Draft202012Validator.check_schema(load(name))
    app(["schema", name], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == load(name)


def test_an_unknown_name_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'curate'.* choose from app, case"):
        read_schema("curte")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_a_description(name: str) -> None:
    schema = load(name)
    tables = {name: schema, **schema.get("$defs", {})}
    for table_name, table in tables.items():
        settings = dict(settings_in(table, table_name))
        assert settings
        undescribed = [path for path, setting in settings.items() if "description" not in setting]
        assert undescribed == []


@pytest.mark.parametrize("name", SETTINGS)
def test_reader_and_schema_take_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(TAKEN[name], encoding="utf-8")
    SETTINGS[name](path)
    assert problems(name, TAKEN[name]) == []


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_reader_and_schema_refuse_the_same_change(row: str, tmp_path: Path) -> None:
    name, before, after = row.split(" | ")
    text = TAKEN[name].replace(before, after)
    assert text != TAKEN[name]
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(H2HTalkError):
        SETTINGS[name](path)
    assert problems(name, text)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("curate.toml", "curate"),
        ("public.toml", "curate"),
        ("release.toml", "release"),
        ("models-50.toml", "suite"),
    ],
)
def test_an_example_names_its_schema_in_the_first_line_and_keeps_it(file: str, name: str) -> None:
    path = ROOT / "examples" / file
    text = path.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    assert first.startswith("#:schema ")
    schema = (path.parent / first.removeprefix("#:schema ")).resolve()
    assert json.loads(schema.read_text(encoding="utf-8")) == load(name)
    assert problems(name, text) == []

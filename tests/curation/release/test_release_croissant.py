"""The Croissant record: the real library reads it, and our check finds what the library lets pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlcroissant
import pyarrow.parquet as pq
import pytest
from card_made import made_content, make_card
from huggingface_hub import metadata_load
from releases_made import case, scenario

from h2htalk.curation.release.croissant import GAP, check_croissant
from h2htalk.curation.release.settings import CardSettings
from h2htalk.data.releases.release_folder import data_file

Record = dict[str, Any]
# mlcommons/croissant#1012.
NEURIPS_2026 = """rai:dataLimitations rai:dataBiases rai:personalSensitiveInformation rai:dataUseCases
rai:dataSocialImpact rai:hasSyntheticData prov:wasDerivedFrom prov:wasGeneratedBy"""


def read_record(folder: Path) -> Record:
    record: Record = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    return record


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("croissant") / "made"
    make_card(folder)
    return folder


@pytest.mark.parametrize("private", [False, True])
def test_the_library_accepts_the_record_without_a_warning(tmp_path: Path, private: bool) -> None:
    make_card(tmp_path / "made", private=private, card=CardSettings(citation="@misc{x}", authors=("Jane Roe", "李雷")))
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "made" / "croissant.json"))
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    assert dataset.metadata.data_biases == [GAP]


def test_the_library_loads_every_record_set(release: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
    for records in read_record(release)["recordSet"]:
        name = records["@id"]
        config, _, split = name.rpartition("_")
        rows = pq.read_table(release / data_file(config, split)).to_pylist()
        found = list(dataset.records(record_set=name))
        assert len(found) == len(rows)
        for record, row in zip(found, rows, strict=True):
            assert set(record) == {f"{name}/{column}" for column in row}
            if "id" in row:
                assert record[f"{name}/id"] == row["id"].encode()
                said = [one[f"{name}/messages/content"] for one in record[f"{name}/messages"]]
                assert said == [one["content"].encode() for one in row["messages"]]
            else:
                assert list(record[f"{name}/values"]) == [value.encode() for value in row["values"]]
                assert record[f"{name}/agreement"] == row["agreement"]


def test_the_library_refuses_a_file_that_was_changed(tmp_path: Path) -> None:
    make_card(tmp_path / "made")
    other = tmp_path / "made" / data_file("zh", "test")
    (tmp_path / "made" / data_file("en", "test")).write_bytes(other.read_bytes())
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "made" / "croissant.json"))
    with pytest.raises(mlcroissant.GenerationError, match=r"(?i)hash|sha256|download"):
        list(dataset.records(record_set="en_test"))


def test_a_gap_is_named_and_what_the_owner_says_is_there(release: Path, tmp_path: Path) -> None:
    record = read_record(release)
    assert [name for name in NEURIPS_2026.split() if not record.get(name) and record.get(name) is not False] == []
    assert record["rai:dataLimitations"] == [GAP]
    assert record["version"] == "1.0.0"
    assert record["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    card = CardSettings(limitations="Short talks.", homepage="https://lab.example.org", payment="14 an hour")
    make_card(tmp_path / "made", card=card, version="2.1")
    record = read_record(tmp_path / "made")
    assert record["rai:dataLimitations"] == ["Short talks."]
    assert record["rai:annotatorDemographics"][1] == "payment: 14 an hour"
    assert (record["url"], record["version"]) == ("https://lab.example.org", "2.1.0")
    assert record["rai:dataAnnotationAnalysis"][0] == "Krippendorff's alpha, crowd, keep, 6 items: 0.731 (0.61 to 0.84)"


def test_what_a_model_wrote_is_synthetic(tmp_path: Path) -> None:
    written = [{"origin": "original"}, {"origin": "model:embedded"}]
    simulated = {"source": "simulated", "dialogue": "simulated-1", "simulated": {"row": 1}}
    mock = simulated | {"source": "generated"}
    cases: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
        "mock": ({"provenance": mock}, {}, True),
        "found": ({"metadata": {"references": written[:1]}}, {}, False),
        "reference": ({"metadata": {"references": written}}, {}, True),
        "simulated": ({"provenance": simulated}, {}, True),
        "composed": ({}, {"models": {"compose": "embedded"}}, True),
    }
    for name, (fields, facts, synthetic) in cases.items():
        make_card(tmp_path / name, made_content(test=[scenario(1, **fields)]), facts=facts)
        assert read_record(tmp_path / name)["rai:hasSyntheticData"] is synthetic
        creators = metadata_load(tmp_path / name / "README.md")["language_creators"]
        assert creators == ["found"] * (name not in ("mock", "simulated")) + ["machine-generated"] * synthetic


def test_cases_are_a_source(tmp_path: Path) -> None:
    make_card(tmp_path / "made", made_content([case(1)], test=[]))
    (source,) = read_record(tmp_path / "made")["prov:wasDerivedFrom"]
    assert source["prov:label"] == "cases written for studies (1 case)"


# --- Our check --------------------------------------------------------------------------------------------------------


def _change(record: Record, path: str, value: object) -> None:
    """Set what lies at `a.0.b`; None removes it."""
    *above, last = path.split(".")
    place: Any = record
    for part in above:
        place = place[int(part) if part.isdigit() else part]
    if value is None:
        del place[last]
    else:
        place[last] = value


def test_the_check_accepts_our_records(release: Path) -> None:
    assert check_croissant(read_record(release)) == []


@pytest.mark.parametrize("name", [*NEURIPS_2026.split(), "description", "url", "creator", "citeAs", "license"])
def test_a_missing_or_empty_field_is_found_although_the_library_may_let_it_pass(release: Path, name: str) -> None:
    for value in (None, ""):
        record = read_record(release)
        _change(record, name, value)
        assert check_croissant(record) == [f"made: {name} is missing"]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("rai:useCases", ["x"], "made: no such key rai:useCases"),
        ("rai:dataBias", ["x"], "made: no such key rai:dataBias; did you mean 'rai:dataBiases'?"),
        ("@context.rai", None, "@context: rai must be"),
        ("@context.sc", "http://schema.org/", "@context: sc must be https://schema.org/"),
        ("conformsTo", ["http://mlcommons.org/croissant/1.1"], "RAI/1.0 is missing"),
        ("name", None, "record: name is missing"),
        ("distribution.0.sha256", None, "sha256 is missing"),
        ("distribution.0.contentURL", "x", "no such key contentURL"),
        ("recordSet.0.field", [], "field is missing"),
        ("recordSet.0.fields", [], "no such key fields; did you mean 'field'?"),
        ("recordSet.0.field.0.source", None, "source is missing"),
        ("recordSet.0.field.0.dataTypes", "sc:Text", "no such key dataTypes"),
        ("prov:wasGeneratedBy.0.prov:label", None, "prov:wasGeneratedBy 1: prov:label is missing"),
        ("creator.0.name", "", "creator 1: name is missing"),
    ],
)
def test_a_mistake_is_found(release: Path, path: str, value: object, problem: str) -> None:
    record = read_record(release)
    _change(record, path, value)
    assert [found for found in check_croissant(record) if problem in found] != []

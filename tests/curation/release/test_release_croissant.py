"""The Croissant record: the real library reads it, and no field that it must have is empty."""

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

from h2htalk.curation.release.croissant import GAP
from h2htalk.curation.release.settings import CardSettings
from h2htalk.data.releases.release_folder import data_file

Record = dict[str, Any]
# The library lets a misspelt or an empty key pass. The eight that the NeurIPS 2026 track on evaluations and data sets
# wants (mlcommons/croissant#1012) are among these.
KEYS = """@context @type conformsTo name description license url creator datePublished version citeAs inLanguage
distribution recordSet prov:wasDerivedFrom prov:wasGeneratedBy rai:hasSyntheticData rai:dataCollection
rai:dataPreprocessingProtocol rai:dataAnnotationProtocol rai:dataAnnotationPlatform rai:dataAnnotationAnalysis
rai:annotationsPerItem rai:annotatorDemographics rai:machineAnnotationTools rai:dataBiases rai:dataUseCases
rai:dataLimitations rai:dataSocialImpact rai:personalSensitiveInformation rai:dataReleaseMaintenancePlan"""


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
    assert record.keys() == set(KEYS.split())
    assert [name for name, value in record.items() if value in ("", [], {})] == []
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

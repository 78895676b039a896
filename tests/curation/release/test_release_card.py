"""The card: what the Hub, `datasets` and a reader see, and that no value breaks it; a broken release; differences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mlcroissant
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, metadata_load
from markdown_it import MarkdownIt

from h2htalk.analysis.report.analysis_page import page_text
from h2htalk.analysis.report.figure_specs import figure_specs
from h2htalk.benchmark.summary import Summary
from h2htalk.curation.licences import LICENCES
from h2htalk.curation.release.build import check_release, content_facts
from h2htalk.curation.release.card import (
    GAP,
    chats_of_people,
    front_matter,
    read_results,
    write_card,
)
from h2htalk.curation.release.content import (
    ReleaseContent,
    ReleaseItem,
    VoteRow,
    diff_releases,
    write_data,
)
from h2htalk.curation.release.gates import GATES
from h2htalk.curation.release.settings import CardSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.files import write_json, write_jsonl, write_text
from h2htalk.data.releases.release_folder import (
    TOMBSTONES,
    Manifest,
    canary_of,
    data_file,
    hash_files,
    read_manifest,
)
from h2htalk.data.run_folder import MADE_BY, RunFolder
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from h2htalk.text.record_diff import format_diff
from support.analyses import made_analysis
from support.releases import case, scenario
from support.summaries import made_summary, same_values
from support.tables import table

ALPHA = {
    "level": "nominal",
    "alpha": 0.7312,
    "interval": [0.61, 0.84],
    "items": 6,
    "votes": 120,
    "reason": "",
}
UNDEFINED = ALPHA | {"alpha": None, "interval": None, "reason": "all votes are one label"}


def votes(name: str, value: str = "keep") -> tuple[VoteRow, ...]:
    """The votes of three experts on one item; they agree."""
    row = VoteRow(
        name, "expert", "keep", "label", ("a1", "b2", "c3"), (value,) * 3, value, "majority", 1.0
    )
    return (row, VoteRow(name, "expert", "accuracy", "rating", ("a1",), ("4",), "4", "mean"))


def made_content(cases: Sequence[Case] = (), **splits: Sequence[Any]) -> ReleaseContent:
    """Two scenarios a language in `test`, one in `dev`, or the given ones; with votes."""
    chosen = splits or {
        "test": [scenario(1), scenario(2), scenario(11, "zh"), scenario(12, "zh")],
        "dev": [scenario(3), scenario(13, "zh")],
    }
    items = {
        split: tuple(ReleaseItem(one, votes(one.id)) for one in own)
        for split, own in chosen.items()
    }
    return ReleaseContent(items, tuple(cases), {"nora": bundled_personas()["nora"]})


def made_facts(content: ReleaseContent, **other: Any) -> dict[str, Any]:
    """Facts as `release_facts` gives them."""
    number = sum(map(len, content.splits.values()))
    funnel = (("gather", 1200, 1150), ("anonymize", 1150, 1150), ("release", 1150, number))
    of_rounds = (
        ("crowd", "spreadsheets", 20, [2, 5], "keep"),
        ("expert", "argilla", 5, [3, 3], "accuracy"),
    )
    names = ("kind", "where", "annotators", "annotations_an_item")
    one = {"items": 6, "annotations": 120, "minutes_an_item": 1.5}
    facts: dict[str, Any] = {
        "made_with": "h2htalk 0.1.0",
        "funnel": [dict(zip(("stage", "read", "kept"), row, strict=True)) for row in funnel],
        "refused": {"crowd: keep is drop": 1000, "accuracy below 3.5": 50},
        "quotas": dict.fromkeys(SUBTASKS, 0) | {"dialogue_base": 4, "dev": 2},
        "acceptance": {"experts": 3, "accuracy": 3.5, "consistency": 3.5, "domain_compliance": 3.5},
        "rounds": [
            one
            | dict(zip(names, row, strict=True))
            | {"agreement": {question: ALPHA, "subtask": UNDEFINED}}
            for *row, question in of_rounds
        ],
        "models": {"review": "claude-3-7-sonnet"},
        "gates": {gate.name: gate.stops for gate in GATES.values()},
        "other_splits": ["mini@1"],
    }
    return facts | content_facts(content) | other


def make_card(
    folder: Path,
    content: ReleaseContent | None = None,
    card: CardSettings | None = None,
    *,
    tombstones: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Manifest:
    """Write a release with its card; `fields` replace those of the manifest."""
    content = content or made_content([case(1), case(2, "zh")])
    card = card or CardSettings()
    manifest = Manifest(
        "made", "1.0.0", "CC-BY-4.0", "Made for tests.", "2026-01-02", canary_of("made"), {}, {}
    )
    folder.mkdir(parents=True)
    write_data(content, folder, manifest.canary)
    if tombstones:
        write_jsonl(folder / TOMBSTONES, ({"id": name} for name in tombstones))
    write_text(folder / "guidelines" / "crowd-en.md", "# Guidelines\n")
    known = {"configs": content.configs(), "facts": made_facts(content) | dict(facts or {})}
    manifest = replace(manifest, **known | fields)
    write_card(folder, manifest, card)
    manifest = replace(manifest, files=hash_files(folder))
    manifest.write(folder)
    return manifest


TEXTS = [
    name for name, value in asdict(CardSettings()).items() if value == "" and name != "analysis"
]
HOSTILE = "a|b `c` <script>alert(1)</script>\n---\n# d\n\n{{7*7}} {% raw %} ``` - e: 'f' \"g\" &lt; [h](javascript:i)花"
# Values of the Hub (huggingface/hub-docs: datasetcard.md, repositories-licenses.md).
SIZES = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "other"]
CREATORS = {"found", "crowdsourced", "expert-generated", "machine-generated"}


class Page:
    """The elements, tables and text of a rendered card, which is well-formed."""

    def __init__(self, folder: Path) -> None:
        _, _, body = (folder / "README.md").read_text(encoding="utf-8").partition("\n---\n")
        rendered = (
            MarkdownIt("commonmark", {"html": True})
            .enable("table")
            .render(body)
            .replace("<br>", "<br/>")
        )
        root = ElementTree.fromstring(f"<div>{rendered}</div>")
        self.text, self.elements = "".join(root.itertext()), [*root.iter()][1:]
        self.tables = [
            [["".join(map(str.strip, cell.itertext())) for cell in row] for row in table.iter("tr")]
            for table in self.elements
            if table.tag == "table"
        ]

    def table(self, heading: str) -> list[list[str]]:
        """The rows of the table with that heading."""
        return next(rows for head, *rows in self.tables if heading in head)

    def tags(self) -> list[str]:
        return [one.tag for one in self.elements]

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [one.attrib for one in self.elements if one.tag == tag]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("card") / "made"
    make_card(folder)
    return folder


def test_the_hub_and_datasets_read_every_configuration(release: Path, tmp_path: Path) -> None:
    found = metadata_load(release / "README.md")
    data = DatasetCard.load(release / "README.md").data
    assert found == data.to_dict()
    assert (data.language, data.license, data.pretty_name) == (["en", "zh"], "cc-by-4.0", "made")
    assert data.size_categories[0] in SIZES
    assert set(data.annotations_creators) | set(data.language_creators) <= CREATORS
    assert (data.task_categories, data.multilinguality) == (["text-generation"], ["multilingual"])
    configs = MetadataConfigs.from_dataset_card_data(data)
    assert configs.get_default_config_name() == "en"
    declared = {
        name: {one["split"] for one in config["data_files"]} for name, config in configs.items()
    }
    assert declared == {
        name: set(splits) for name, splits in read_manifest(release).configs.items()
    }
    assert all(
        (release / one["path"]).is_file()
        for config in configs.values()
        for one in config["data_files"]
    )
    # `datasets` loads every configuration.
    for config, splits in read_manifest(release).configs.items():
        loaded = load_dataset(str(release), config, cache_dir=str(tmp_path))
        assert {name: len(rows) for name, rows in loaded.items()} == splits
    default = load_dataset(str(release), split="test", cache_dir=str(tmp_path))
    assert default["id"] == ["made-000001:dialogue_base", "made-000002:dialogue_base"]
    assert default[0]["messages"][0]["role"] == "system"


def test_a_release_of_one_language_or_of_cases_alone_has_a_default(tmp_path: Path) -> None:
    contents = {
        "zh": made_content(test=[scenario(11, "zh")]),
        "high_risk_zh": made_content([case(1, "zh")], test=[]),
    }
    for config, content in contents.items():
        folder = tmp_path / config
        make_card(folder, content)
        assert MetadataConfigs.from_dataset_card_data(DatasetCard.load(folder / "README.md").data)[
            config
        ]["default"]
        assert len(load_dataset(str(folder), split="test", cache_dir=str(tmp_path))) == 1
        assert metadata_load(folder / "README.md")["multilinguality"] == ["monolingual"]


def test_every_licence_is_the_hubs_or_named_as_another() -> None:
    facts = made_facts(made_content())
    other = set()
    for licence in LICENCES.values():
        manifest = Manifest(
            "made",
            "1.0",
            licence.id,
            "",
            "2026-01-02",
            "",
            {"en": {"test": 20_000}},
            {},
            facts=facts,
        )
        found = front_matter(
            manifest, CardSettings(), {"inLanguage": ["en"], "rai:hasSyntheticData": False}
        )
        assert found["size_categories"] == ["10K<n<100K"]
        if found["license"] == "other":
            assert found["license_link"] == f"https://spdx.org/licenses/{licence.id}.html"
            other.add(licence.id)
        else:
            assert licence.id.lower().startswith(found["license"])
    assert {"MIT-0", "CC-BY-1.0"} <= other
    assert other.isdisjoint(
        {"MIT", "Apache-2.0", "CC0-1.0", "ODbL-1.0", "GPL-3.0-or-later", "CC-BY-NC-SA-4.0"}
    )


def test_every_field_that_the_owner_left_empty_is_a_gap(release: Path, tmp_path: Path) -> None:
    # All but the title, which is then the name, and the citation, which is then made; also authors, baselines, figures.
    assert Page(release).text.count(GAP) >= len(TEXTS) - 2 + 3
    texts = {name: f"Text of {name}." for name in TEXTS} | {
        "homepage": "https://a.org",
        "contact": "mailto:a@a.org",
    }
    card = CardSettings(**texts, authors=("Jane Roe",))
    make_card(tmp_path / "full", card=card)
    page = Page(tmp_path / "full")
    assert [name for name, text in texts.items() if text not in page.text] == []
    assert page.text.count(GAP) == 2  # baselines and figures
    assert "Jane Roe" in page.text
    # The record names what the owner said, and the library accepts it without a warning.
    record = read_record(tmp_path / "full")
    assert record["rai:dataLimitations"] == [texts["limitations"]]
    assert record["rai:annotatorDemographics"][1] == f"payment: {texts['payment']}"
    make_card(
        tmp_path / "made", card=CardSettings(citation="@misc{x}", authors=("Jane Roe", "李雷"))
    )
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "made" / "croissant.json"))
    assert (dataset.metadata.ctx.issues.errors, dataset.metadata.ctx.issues.warnings) == (
        set(),
        set(),
    )
    assert dataset.metadata.data_biases == [GAP]


def test_the_tables_show_the_facts(release: Path) -> None:
    page = Page(release)
    counts = page.table("Quota")
    assert counts[0] == ["DialogueBase", "1,882", "4", "2", "1", "2", "1", "6"]
    assert counts[1] == ["DialogueEmotion", "99", "0", "0", "0", "0", "0", "0"]
    assert counts[-1] == ["Total", "4,650", "4", "2", "1", "2", "1", "6"]
    assert page.table("Stage")[0] == ["gather", "1,200", "1,150"]
    assert [row[4] for row in page.table("Platform")] == ["2 to 5", "3"]
    assert page.table("Platform")[1] == ["expert", "argilla", "6", "5", "3", "120", "1.5"]
    agreement = page.table("Krippendorff's alpha")
    assert agreement[0] == ["crowd", "keep", "0.731", "0.61 to 0.84", "6", "120"]
    assert agreement[1] == ["crowd", "subtask", "all votes are one label", "", "6", "120"]
    assert [row[0] for row in page.table("Items that were read for it")] == list(GATES)
    assert page.table("Set")[0][1] == "6 scenarios, 2 cases"
    assert page.table("Why an item that people saw was refused")[0] == [
        "crowd: keep is drop",
        "1,000",
    ]
    assert ["votes", "dev", "4", "votes on a question of an item"] in page.table("Configuration")
    assert {"id", "sessions", "annotators"} <= {row[0] for row in page.table("Column")}
    assert {"href": "guidelines/crowd-en.md"} in page.attributes("a")


def make_run(folder: Path, summary: Summary | None) -> Path:
    signature = made_summary().signature.to_dict()
    write_json(
        folder / "run.json", {"spec": {}, "signature": signature, "package_version": "0.1.0"}
    )
    if summary is not None:
        RunFolder(folder).write_summary(summary.to_dict())
    return folder


def test_a_run_gives_its_model_and_the_trivial_answers(tmp_path: Path) -> None:
    summary = made_summary(
        same_values(0.5), model="openai:m", baselines={"constant": same_values(0.1)}
    )
    model, constant = read_results(make_run(tmp_path / "a", summary))
    assert (model["name"], constant["name"], model["split"]) == ("openai:m", "constant", "mini 1")
    assert model["measure"] == "S, unjudged (en, zh)"
    overall = (summary.rows.s or {})["overall"]
    assert model["cells"]["overall"] == [overall.value, overall.low, overall.high]
    assert constant["cells"]["items_mean"][0] == pytest.approx(10)
    assert (model["scored"], model["total"]) == (22, 22)
    judged = made_summary(same_values(0.5), s_languages=("en",), comparable=False, judged=True)
    (row,) = read_results(make_run(tmp_path / "b", judged))
    assert row["measure"] == "S of another embedder (en)"
    # A card has no address and no folder.
    for n, (model, shown) in enumerate(table("curation", "models_on_a_card")):
        assert (
            next(read_results(make_run(tmp_path / str(n), made_summary(model=model))))["name"]
            == shown
        )
    # Runs that are not finished are refused.
    unscored = made_summary(same_values(0.5) | {"dialogue_base": [0.5, None]})
    cases: list[tuple[Path, type[H2HTalkError], str]] = [
        (make_run(tmp_path / "unscored", unscored), ConfigError, "incomplete"),
        (make_run(tmp_path / "none", None), ConfigError, "h2htalk score"),
        (tmp_path / "nowhere", DataError, "not a run folder"),
    ]
    for folder, kind, message in cases:
        with pytest.raises(kind, match=message):
            list(read_results(folder))


def make_analysis(folder: Path, *splits: str) -> Path:
    """The page and the summary of an analysis, with a caption of Markdown and HTML, and with empty figures."""
    analysis = made_analysis()
    shown = figure_specs(analysis)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt" viewBox="0 0 10 10"></svg>'
    page = page_text(analysis, shown, {spec.name: svg for spec in shown}, {"seed": "0"})
    write_json(folder / "summary.json", {"made_by": MADE_BY, "splits": splits})
    write_text(
        folder / "index.html",
        page.replace("Words of the responses.", "Words. Most: a|b &lt;c&gt; *d*."),
    )
    for spec in shown:
        write_text(folder / "figures" / f"{spec.name}.png", spec.name)
    return folder


def test_baselines_and_figures_come_from_finished_folders(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", made_summary(model="openai:gpt-4o"))
    make_card(tmp_path / "without")
    analysis = make_analysis(tmp_path / "analysis", load_split(tmp_path / "without").fingerprint)
    make_card(tmp_path / "made", card=CardSettings(baselines=(str(run),), analysis=str(analysis)))
    page = Page(tmp_path / "made")
    (row,) = page.table("Answers")
    assert row[0] == "openai:gpt-4oS, unjudged (en, zh)"
    assert re.fullmatch(r"40\.00\d\d\.\d\d\xa0to\xa0\d\d\.\d\d", row[2])
    assert row[-1] == "22 of 22"
    figures = [values["src"] for values in page.attributes("img")]
    assert figures[:2] == ["figures/lengths_en.png", "figures/words_en_instruction.png"]
    assert len(figures) == 12
    assert all((tmp_path / "made" / name).read_text() == Path(name).stem for name in figures)
    assert {"src": "figures/words_zh_response.png", "alt": "Chinese: Words"} in page.attributes(
        "img"
    )
    assert re.search(r"Chinese: Words\. Most: a\|b <c> \*d\*\. .*“memory”", page.text)


def test_no_value_breaks_yaml_tables_or_html(release: Path, tmp_path: Path) -> None:
    texts = [name for name in TEXTS if name not in ("homepage", "contact")]
    card = CardSettings(
        **dict.fromkeys(texts, HOSTILE), authors=(HOSTILE, HOSTILE), leaderboard=True
    )
    facts: dict[str, Any] = {
        "models": {"review": HOSTILE},
        "other_splits": [HOSTILE],
        "made_with": HOSTILE,
    }
    facts |= {"refused": {HOSTILE: 1000, "accuracy below 3.5": 50}}
    facts |= {"sources": {HOSTILE: {"licence": HOSTILE, "items": 6}}}
    facts |= {"funnel": [{"stage": HOSTILE, "read": 1, "kept": 1}] * 3}
    facts |= {
        "tags": {name: {HOSTILE: 6} for name in ("emotion", "complexity", "interaction", "risk")}
    }
    folder = tmp_path / "made"
    make_card(folder, card=card, facts=facts, description=HOSTILE)
    line = " ".join(HOSTILE.split())
    assert metadata_load(folder / "README.md")["pretty_name"] == line
    page = Page(folder)
    clean = Page(release)
    assert [[len(row) for row in rows] for rows in page.tables] == [
        [len(row) for row in rows] for rows in clean.tables
    ]
    # More paragraphs, fewer emphasised gaps; nothing else differs, and no element acts.
    assert {*page.tags(), "em"} == {*clean.tags()}
    assert page.tags().count("h2") == clean.tags().count("h2")
    assert page.tags().count("a") == clean.tags().count("a")
    assert page.table("Stage")[0][0] == line
    assert page.text.count("<script>alert(1)</script>") >= len(texts)
    assert len(load_dataset(str(folder), "en", split="test", cache_dir=str(tmp_path))) == 2


def test_the_funnel_tells_of_anonymisation(tmp_path: Path) -> None:
    facts = made_facts(made_content())
    make_card(tmp_path / "made", facts={"funnel": facts["funnel"][:1]})
    assert "Personal data in the conversations was not replaced." in Page(tmp_path / "made").text
    risky = replace(scenario(4), tags=replace(scenario(4).tags, risk="high"))
    make_card(tmp_path / "risky", made_content([case(1)], test=[risky, scenario(5)]))
    assert re.search("2 items are about a crisis", Page(tmp_path / "risky").text)


def test_chats_between_people_are_named_on_the_card_and_in_croissant(tmp_path: Path) -> None:
    """A source's programs are known from its settings; one without an item in the release is not named."""
    name = next(iter(made_facts(made_content())["sources"]))
    make_card(
        tmp_path / "made",
        facts={"chats_of_people": {name: "WhatsApp", "other": "Telegram Desktop"}},
    )
    line = f"Messages of other people than the owner of the chats are in the data: sources {name} (WhatsApp)."
    assert line in Page(tmp_path / "made").text
    assert line in (tmp_path / "made" / "croissant.json").read_text(encoding="utf-8")
    make_card(tmp_path / "none", facts={"chats_of_people": {}})
    assert "other people" not in Page(tmp_path / "none").text


def test_the_programs_of_a_workspace_are_facts_of_its_release(tmp_path: Path) -> None:
    sources = [
        ("chats", "whatsapp"),
        ("tavern", "sillytavern"),
        ("helpline", "messages"),
        ("rows", "turns"),
    ]
    settings = {
        "sources": [{"name": name, "format": form, "sha256": "0"} for name, form in sources]
    }
    stage = {
        "stage": "gather",
        "version": 3,
        "settings": settings,
        "source": "",
        "fingerprint": "0",
    }
    write_json(tmp_path / "gather" / "stage.json", stage)
    assert chats_of_people(Workspace(tmp_path)) == {
        "chats": "WhatsApp",
        "rows": "rows of one message",
    }


@pytest.mark.parametrize("languages", [("en",), ("zh",), ("en", "zh")])
def test_each_language_of_the_test_split_has_15_tasks(
    tmp_path: Path, languages: tuple[str, ...]
) -> None:
    test = [scenario(n, one) for n, one in enumerate(languages)]
    content = made_content([case(1)], test=test, dev=[scenario(9, "zh")])
    make_card(tmp_path / "made", content, CardSettings(title="A | b\n---", leaderboard=True))
    found = yaml.safe_load((tmp_path / "made" / "eval.yaml").read_text(encoding="utf-8"))
    assert found["evaluation_framework"] == "h2htalk"
    tasks = {(task["id"], task["config"]) for task in found["tasks"]}
    names = ("overall", *DIMENSIONS, *SUBTASKS)
    assert tasks == {
        (name + ("_zh" if lang == "zh" else ""), lang) for lang in languages for name in names
    }
    assert len(tasks) == 15 * len(languages)


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


def test_the_library_loads_every_record_set(release: Path) -> None:
    dataset = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
    record = read_record(release)
    assert record.keys() == set(KEYS.split())
    assert [name for name, value in record.items() if value in ("", [], {})] == []
    assert record["rai:dataLimitations"] == [GAP]
    for records in record["recordSet"]:
        name = records["@id"]
        config, _, split = name.rpartition("_")
        rows = pq.read_table(release / data_file(config, split)).to_pylist()
        found = list(dataset.records(record_set=name))
        assert len(found) == len(rows)
        for one, row in zip(found, rows, strict=True):
            assert set(one) == {f"{name}/{column}" for column in row}
            assert "id" not in row or one[f"{name}/id"] == row["id"].encode()


def test_what_a_model_wrote_is_synthetic(tmp_path: Path) -> None:
    written = [{"origin": "original"}, {"origin": "model:embedded"}]
    simulated = {"source": "simulated", "dialogue": "simulated-1", "simulated": {"row": 1}}
    cases: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
        "found": ({"metadata": {"references": written[:1]}}, {}, False),
        "reference": ({"metadata": {"references": written}}, {}, True),
        "simulated": ({"provenance": simulated}, {}, True),
        "composed": ({}, {"models": {"compose": "embedded"}}, True),
    }
    for name, (fields, facts, synthetic) in cases.items():
        make_card(tmp_path / name, made_content(test=[scenario(1, **fields)]), facts=facts)
        assert read_record(tmp_path / name)["rai:hasSyntheticData"] is synthetic
        creators = metadata_load(tmp_path / name / "README.md")["language_creators"]
        assert (
            creators
            == (["found"] if name != "simulated" else []) + ["machine-generated"] * synthetic
        )


Rows = list[dict[str, Any]]


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (
            "votes",
            lambda rows: rows[1].update(decision="nan"),
            "row 2: needs .* numbers for a rating",
        ),
        # What viewers and trainers read was read by no gate.
        (
            "en",
            lambda rows: rows[0]["messages"][-1].update(content="Do it."),
            "row 1: the column `messages` is not",
        ),
        (
            "en",
            lambda rows: rows[1].update(persona="stranger"),
            "made-000002.*: personas/ lacks 'stranger' in",
        ),
    ],
)
def test_a_broken_row_is_named(
    tmp_path: Path, config: str, change: Callable[[Rows], Any], message: str
) -> None:
    """The hashes are those of the changed rows."""
    folder = tmp_path / "release"
    make_card(folder, made_content([case(1), case(2)]))
    known = pq.read_table(folder / data_file(config, "test"))
    change(rows := known.to_pylist())
    pq.write_table(
        pa.Table.from_pylist(rows, schema=known.schema), folder / data_file(config, "test")
    )
    replace(read_manifest(folder), files=hash_files(folder)).write(folder)
    with pytest.raises(DataError, match=message):
        check_release(folder)


def item_id(number: int) -> str:
    return f"made-{number:06}:dialogue_base"


def test_items_that_came_went_moved_and_changed(tmp_path: Path) -> None:
    old = made_content(
        [case(1), case(2)], test=[scenario(n) for n in (1, 2, 3, 4)], dev=[scenario(5), scenario(6)]
    )
    tags = replace(scenario(2).tags, risk="elevated")
    kept = [
        scenario(1),
        replace(scenario(2), tags=tags, licence="CC0-1.0"),
        scenario(6),
        scenario(7),
    ]
    new = made_content([replace(case(1), state="calmer"), case(3)], test=kept, dev=[scenario(5)])
    votes = new.splits["dev"][0].votes
    new = replace(new, splits={**new.splits, "dev": (ReleaseItem(scenario(5), votes[:1]),)})
    make_card(tmp_path / "old", old)
    make_card(
        tmp_path / "new", new, version="1.1.0", licence="CC-BY-SA-4.0", tombstones=[item_id(3)]
    )
    diff = diff_releases(tmp_path / "old", tmp_path / "new")
    assert format_diff(diff).splitlines() == [
        "version: 1.0.0 -> 1.1.0",
        "licence: CC-BY-4.0 -> CC-BY-SA-4.0",
        "en, dev: 2 rows -> 1 rows",
        "votes, dev: 4 rows -> 1 rows",
        "added: 2 (high_risk 1, test 1)",
        "  case-en-3: high_risk",
        f"  {item_id(7)}: test",
        "removed: 3 (erased 1, no longer accepted, or not chosen 2)",
        "  case-en-2: no longer accepted, or not chosen",
        f"  {item_id(3)}: erased",
        f"  {item_id(4)}: no longer accepted, or not chosen",
        "moved: 1 (dev -> test 1)",
        f"  {item_id(6)}: dev -> test",
        "changed: 3 (licence, tags 1, state 1, votes 1)",
        "  case-en-1: state",
        f"  {item_id(2)}: licence, tags",
        f"  {item_id(5)}: votes",
    ]


def test_a_card_says_what_is_known_of_recall(tmp_path: Path) -> None:
    line = "people of the sample seed-0, of 9 en dialogues kept without a tag: harm 0 of 9: at most 30 %"
    folder = tmp_path / "release"
    make_card(folder, facts={"recall": [line]})
    assert line in (folder / "README.md").read_text(encoding="utf-8")

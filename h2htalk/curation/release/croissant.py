"""The release as a Croissant 1.1 record with Responsible AI (RAI) 1.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.curation.candidates import MODEL
from h2htalk.curation.release.settings import CardSettings
from h2htalk.curation.stages import SIMULATED
from h2htalk.data.files import sha256_of
from h2htalk.data.releases.release_folder import CARD, VOTES, Manifest, data_file
from h2htalk.errors import counted

GAP = "Not given by the owner."
SYNTHETIC_SOURCES = (SIMULATED, "generated")  # of gather: by a model, and mock dialogues
_SPECS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
_TERMS = """annotation arrayShape citeAs column containedIn equivalentProperty excludes extract field fileObject
fileProperty fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path readLines recordSet
references regex repeated replace samplingRate sdVersion separator source subField transform unArchive value"""
# The specification prints http://schema.org/; mlcroissant 1.1 knows only https.
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
_COLUMNS = """\
id: id of the item; subtask: one of the eleven subtasks; study: study that the case belongs to; kind: kind of the
case, or name of its risk; family: cases of one need share it; language: language code; persona: id of the companion's
persona, a file in the folder personas; messages: the inputs as a conversation, for readers; inputs: the inputs, as
JSON; references: good answers, 1 to 5, none where they are private; emotion: emotion of the user; complexity: basic,
intermediate or advanced; interaction: casual, emotional_support or memory; risk: none, elevated or high; sessions:
scripted turns of the user, with references, as JSON; degree: degree of explicitness, from 0 on; request_type: what
the user asks for; state: emotional state of the user; points: what a reply must or must not do, as JSON; history: the
conversation before, as JSON; facts: what the user told or never told, as JSON; tags: short words; licence: SPDX
identifier of the item's licence; provenance: source, dialogue and person, as JSON; metadata: origin of the references
and a model's review, as JSON; canary: text by which training data can be filtered; item: id of the item; round: kind
of the annotation round; question: question of the round; form: label, labels or rating; annotators: salted hash of
each annotator; values: the vote of each annotator, in the same order; decision: decided label or mean, empty for a
tie; rule: rule of the decision; agreement: share of equal pairs of votes, 0 to 1"""
COLUMNS = dict(" ".join(one.split()).split(": ", 1) for one in _COLUMNS.split(";"))


def licence_page(licence: str) -> str:
    """The page of an SPDX identifier."""
    return f"https://spdx.org/licenses/{licence}.html"


def number_range(ends: Sequence[int]) -> str:
    """The least and the most of something: `2 to 5`, or `3` where they are equal."""
    return " to ".join(f"{end:,}" for end in sorted(set(ends)))


def croissant_record(folder: Path, manifest: Manifest, card: CardSettings, citation: str) -> dict[str, Any]:
    """Describe a folder with data files, of which sizes, hashes and columns are read."""
    parts = [(config, split) for config, splits in manifest.configs.items() for split in splits]
    files = {f"{config}_{split}": data_file(config, split) for config, split in parts}
    return {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": list(_SPECS),
        "name": manifest.name,
        "description": manifest.description or GAP,
        "license": licence_page(manifest.licence),
        # Where it will be published is not known yet; the card lies beside this file.
        "url": card.homepage or CARD,
        "creator": [{"@type": "sc:Person", "name": name} for name in card.authors or (GAP,)],
        "datePublished": manifest.date,
        "version": manifest.version if manifest.version.count(".") == 2 else f"{manifest.version}.0",
        "citeAs": citation,
        "inLanguage": sorted({config.rpartition("_")[2] for config in manifest.configs} - {VOTES}),
        **_responsible_ai(manifest, card),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                "contentUrl": path,
                "sha256": sha256_of(file),
                "contentSize": f"{file.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
            }
            for path in files.values()
            for file in [folder / path]
        ],
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": name, "name": name, "field": [*_fields(name, path, folder)]}
            for name, path in files.items()
        ],
    }


def _fields(record_set: str, path: str, folder: Path) -> Iterator[dict[str, Any]]:
    """The columns of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.string(): "sc:Text"}
    for column in pq.read_schema(folder / path):
        name, kind = column.name, column.type
        field = {"@type": "cr:Field", "@id": f"{record_set}/{name}", "name": name, "description": COLUMNS[name]}
        source: dict[str, Any] = {"fileObject": {"@id": path}, "extract": {"column": name}}
        if pa.types.is_list(kind):
            field |= {"isArray": True, "arrayShape": "-1"}
            kind = kind.value_type
        if pa.types.is_struct(kind):
            parts = [
                {"@type": "cr:Field", "@id": f"{field['@id']}/{part.name}", "name": part.name, "dataType": "sc:Text"}
                | {"source": source | {"transform": {"jsonPath": part.name}}}
                for part in kind
            ]
            yield field | {"subField": parts}
        else:
            yield field | {"dataType": types[kind], "source": source}


def _responsible_ai(manifest: Manifest, card: CardSettings) -> dict[str, Any]:
    """The fields of RAI and PROV, from the facts of the release and what the owner says."""
    facts = manifest.facts
    rounds, tools = facts["rounds"], [f"{model} ({stage})" for stage, model in facts["models"].items()]
    stages = [f"{one['stage']}: {one['read']:,} read, {one['kept']:,} kept" for one in facts["funnel"]]
    sources = [f"{name} ({one['licence']}, {counted(one['items'], 'item')})" for name, one in facts["sources"].items()]
    # The configuration of a study's cases is named STUDY_LANGUAGE.
    cases = {config: sum(splits.values()) for config, splits in manifest.configs.items() if "_" in config}
    if cases:
        sources.append(f"cases written for studies ({counted(sum(cases.values()), 'case')})")
    drawn = [
        f"{one['kind']} round: {counted(one['items'], 'item')}, {counted(one['annotators'], 'annotator')}, "
        f"{number_range(one['annotations_an_item'])} annotations an item, {one['annotations']:,} in all"
        for one in rounds
    ]
    replaced = any(one["stage"] == "anonymize" for one in facts["funnel"])
    crises = sum(number for risk, number in facts["tags"]["risk"].items() if risk != "none")
    crises += sum(number for config, number in cases.items() if config.startswith("high_risk_"))
    origins = [origin for origin in facts["reference_origins"] if origin.startswith(MODEL)]
    synthetic = origins or "compose" in facts["models"] or not facts["sources"].keys().isdisjoint(SYNTHETIC_SOURCES)
    annotators = ("recruitment", "payment", "demographics")
    fields: dict[str, str | bool | list[str]] = {
        "dataCollection": f"Sources: {', '.join(sources) or 'none'}. {card.collection or GAP}",
        "dataPreprocessingProtocol": stages,
        "dataAnnotationProtocol": "; ".join([*drawn, "each decision names its rule in the configuration votes"]),
        "dataAnnotationPlatform": sorted({one["where"] for one in rounds}),
        "dataAnnotationAnalysis": [line for one in rounds for line in _describe_agreement(one)],
        "annotationsPerItem": ", ".join(f"{one['kind']}: {number_range(one['annotations_an_item'])}" for one in rounds),
        "annotatorDemographics": [f"{name}: {getattr(card, name) or GAP}" for name in annotators],
        "machineAnnotationTools": tools or ["none"],
        "dataBiases": [card.biases or GAP],
        "dataUseCases": [f"Intended: {card.intended_use or GAP}", f"Forbidden: {card.forbidden_use or GAP}"],
        "dataLimitations": [card.limitations or GAP],
        "dataSocialImpact": card.risks or GAP,
        "personalSensitiveInformation": [
            f"Personal data in the conversations was {'replaced by invented values' if replaced else 'not replaced'}.",
            f"{counted(crises, 'item is', 'items are')} about a crisis or the risk of one.",
            f"Requests for erasure go to: {card.contact or GAP}",
        ],
        "dataReleaseMaintenancePlan": card.maintenance or GAP,
        "hasSyntheticData": bool(synthetic),
    }
    return {
        **{f"rai:{name}": value for name, value in fields.items()},
        "prov:wasDerivedFrom": [
            {"@type": "prov:Entity", "@id": f"urn:source:{number}", "prov:label": label}
            for number, label in enumerate(sources, 1)
        ],
        "prov:wasGeneratedBy": [
            {"@type": "prov:Activity", "prov:label": label} for label in (*stages, *drawn, facts["made_with"], *tools)
        ],
    }


def _describe_agreement(one: Mapping[str, Any]) -> Iterator[str]:
    for question, found in one["agreement"].items():
        interval = "" if found["interval"] is None else " ({:.2f} to {:.2f})".format(*found["interval"])
        alpha = found["reason"] if found["alpha"] is None else f"{found['alpha']:.3f}{interval}"
        yield f"Krippendorff's alpha, {one['kind']}, {question}, {counted(found['items'], 'item')}: {alpha}"

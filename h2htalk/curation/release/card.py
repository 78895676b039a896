"""The card of a release (`README.md`) and, beside it, Croissant metadata, figures and the Hub's benchmark file."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

from h2htalk.curation.candidates import MODEL
from h2htalk.curation.export_programs import EXPORT_PROGRAMS
from h2htalk.curation.release.exposed import exposure_lines, read_exposure_facts
from h2htalk.curation.release.previous import changes_text
from h2htalk.curation.release.read_summary import cases_among, certificate_rows, counted_rows
from h2htalk.curation.release.readings import CERTIFICATES
from h2htalk.curation.release.settings import ALL, CardSettings
from h2htalk.curation.stages import FIRST_STAGE, SIMULATED
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object, refuse_links, sha256_of, write_json, write_text
from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.data.model_names import without_path
from h2htalk.data.readers.certificates import Certificate
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.records import read_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.run_folder import MADE_BY, PAGE, SCORE_AGAIN, SUMMARY, RunFolder
from h2htalk.data.scenario import personas_of
from h2htalk.data.splits import fingerprint_of
from h2htalk.data.subtasks import DIMENSIONS, FIGURES, SUBTASKS, task_id
from h2htalk.errors import ConfigError, DataError, counted
from h2htalk.text.escaping import Markdown, code_block, escape_markdown, paragraphs, printable
from h2htalk.text.language_data import read_data

GAP = "Not given by the owner."
_LICENCE_PAGE = "https://spdx.org/licenses/{}.html"
_TEMPLATE = Path(__file__).with_name("README.md.j2")
_DATA = read_data(Path(__file__).with_name("card.toml"))
_HUB = _DATA["hub"]
_CROISSANT = _DATA["croissant"]
COLUMNS = _DATA["columns"]
_NOT_REPLACED = (
    "Not replaced is what tells a user's age, school or work year, work, place, family or illness without a name, a "
    "number or an address, unless recognisers of the owner's, or people, removed it. Such details together can tell "
    "people who know a user who it is."
)
_NO_READS: Mapping[str, Any] = {"items": 0, "readers": {}, "unread": {}}
# The columns of a run's row that the table of baselines shows.
_CELLS = {
    "overall": "Overall",
    "items_mean": "Mean over items",
    **{f"{one}_avg": one.title() for one in DIMENSIONS},
}


def write_card(folder: Path, manifest: releases.Manifest, card: CardSettings) -> None:
    """Write `README.md`, `croissant.json`, `figures/` and, where the owner wants it, `eval.yaml`.

    The folder holds data files and guidelines already. Raises ConfigError where a run is incomplete, or an analysis is
    missing or of other rows.
    """
    import yaml

    record = croissant_record(folder, manifest, card)
    write_json(folder / "croissant.json", record)
    dump = partial(yaml.safe_dump, sort_keys=False, allow_unicode=True)
    if card.leaderboard:
        languages = [
            language
            for language in LANGUAGES
            if releases.TEST in manifest.configs.get(language, {})
        ]
        pairs = product(languages, FIGURES)
        tasks = [
            {"id": task_id(figure, one), "config": one, "split": releases.TEST}
            for one, figure in pairs
        ]
        texts = {"name": card.title or manifest.name, "description": manifest.description or GAP}
        board = {name: printable(text) for name, text in texts.items()} | {
            "evaluation_framework": "h2htalk"
        }
        write_text(folder / "eval.yaml", dump(board | {"tasks": tasks}))
    body = _body(folder, manifest, card, record)
    write_text(
        folder / releases.CARD, f"---\n{dump(front_matter(manifest, card, record))}---\n\n{body}"
    )


def front_matter(
    manifest: releases.Manifest, card: CardSettings, record: Mapping[str, Any]
) -> dict[str, Any]:
    """The metadata at the head of the card.

    There is no `dataset_info`: `datasets` refuses files whose number of rows differs from it, as after an erasure.
    """
    facts = manifest.facts
    languages = record["inLanguage"]
    items = releases.count_items(manifest.configs)
    licence = manifest.licence.lower()
    family = next((one for one in _HUB["families"] if licence.startswith(f"{one}-")), "other")
    hub_licence = licence if licence in _HUB["licences"] else family
    link = {"license_name": licence, "license_link": _LICENCE_PAGE.format(manifest.licence)}
    writers = {
        "found": set(facts["sources"]) - {SIMULATED},
        "machine-generated": record["rai:hasSyntheticData"],
    }
    return {
        "language": languages,
        "license": hub_licence,
        **(link if hub_licence == "other" else {}),
        "pretty_name": printable(" ".join((card.title or manifest.name).split())),
        "size_categories": [
            next((size for size, below in _HUB["sizes"].items() if items < below), "other")
        ],
        "task_categories": ["text-generation"],
        "tags": ["h2htalk", "benchmark", "emotional-support", "companion"],
        "annotations_creators": ["crowdsourced", "expert-generated"],
        "language_creators": [name for name, involved in writers.items() if involved],
        "multilinguality": ["multilingual" if len(languages) > 1 else "monolingual"],
        "source_datasets": ["original"],
        "configs": [
            # The first one is English, another language, or the cases of a study.
            {"config_name": config, **({} if number else {"default": True})}
            | {
                "data_files": [
                    {"split": split, "path": releases.data_file(config, split)} for split in splits
                ]
            }
            for number, (config, splits) in enumerate(manifest.configs.items())
        ],
    }


def _bibtex(manifest: releases.Manifest, card: CardSettings) -> str:
    def plain(text: str) -> str:
        return re.sub(r"([&%#$_])", r"\\\1", re.sub(r"[\\{}]", "", " ".join(text.split())))

    fields = {
        "title": plain(card.title or manifest.name),
        "author": " and ".join(f"{{{plain(name)}}}" for name in card.authors) or GAP,
        "year": manifest.date[:4],
        "note": f"Version {manifest.version}",
        **({"url": card.homepage} if card.homepage else {}),
    }
    key = re.sub("[^a-z0-9]+", "-", f"{manifest.name}-{manifest.version}".lower())
    return "\n".join(
        [f"@misc{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"]
    )


def _body(
    folder: Path, manifest: releases.Manifest, card: CardSettings, record: Mapping[str, Any]
) -> str:
    from jinja2 import Environment, StrictUndefined

    facts = manifest.facts
    by_code = {one: find_language(one).name for one in LANGUAGES}
    rows = {
        config: sum(splits.values())
        for config, splits in manifest.configs.items()
        if config != releases.VOTES
    }
    items = sum(number for config, number in rows.items() if config in by_code)
    parts = [(split, one) for one in by_code for split in manifest.configs.get(one, {})]
    columns = {
        field["name"]: field["description"] for one in record["recordSet"] for field in one["field"]
    }
    # Items by subtask: of Table 1, the quota, each split and language, all; then the sums.
    counts: list[tuple[Any, ...]] = []
    for name, subtask in SUBTASKS.items():
        numbers = [
            facts["counts"].get(split, {}).get(name, {}).get(language, 0)
            for split, language in parts
        ]
        counts.append(
            (subtask.title, subtask.count, facts["quotas"].get(name, 0), *numbers, sum(numbers))
        )
    columns_of_counts = list(zip(*counts, strict=True))[1:]
    counts.append(
        ("Total", *(ALL if ALL in column else sum(column) for column in columns_of_counts))
    )
    guidelines = sorted(folder.glob("guidelines/*.md"))
    certificates = read_record(
        list[Certificate], facts.get(CERTIFICATES, []), f"{folder}: facts.{CERTIFICATES}"
    )
    view = {
        "manifest": manifest,
        "facts": facts,
        "card": card,
        "record": record,
        "name": Markdown(manifest.name),  # letters, digits and `._-`, in code
        "tag": Markdown(f"v{manifest.version}"),
        "by_code": by_code,
        "columns": columns.items(),
        "parts": parts,
        "counts": counts,
        "items": items,
        "cases": sum(rows.values()) - items,
        "guidelines": [
            (path.stem, Markdown(quote(f"guidelines/{path.name}"))) for path in guidelines
        ],
        "read_gates": READ_GATES,
        "reads": facts.get("reads", _NO_READS),
        "changes": changes_text(facts["changes"]) if "changes" in facts else "",
        "among": cases_among,
        "certificates": list(certificate_rows(certificates)),
        "counted": list(counted_rows(certificates)),
        "cells": _CELLS.items(),
        "results": [result for path in card.baselines for result in read_results(Path(path))],
        "figures": list(_copy_figures(folder, manifest, card.analysis)),
    }
    # Whatever an expression gives is escaped, unless its type says that it is Markdown already.
    environment = Environment(
        undefined=StrictUndefined, finalize=escape_markdown, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "owner": lambda text: paragraphs(text) if text.strip() else Markdown(f"*{GAP}*"),
        "given": lambda text: text if text.strip() else Markdown(f"*{GAP}*"),
        "code": code_block,
        "spread": number_range,
        "interval": lambda ends: "" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}",
    }
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(view)
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def read_results(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the row of a finished run's model, then those of the trivial answers.

    `cells`: column -> value, low, high, from 0 to 100. Raises ConfigError where the run is incomplete or not scored.
    """
    run = RunFolder(folder)
    run.read_run()
    try:
        summary = run.read_summary()
        measure = summary["measure"]
        languages = summary["s_languages"] or summary["languages"]
        shown = (
            "lexical mean"
            if measure == "lexical"
            else "S"
            if summary["s_comparable"]
            else "S of another embedder"
        )
        shown += f"{'' if summary['judged'] else ', unjudged'} ({', '.join(languages)})"
        if summary["incomplete"]:
            raise ConfigError(
                f"{folder}: the run is incomplete; complete it, or leave it out of the card"
            )
        # A card tells no address of a server and no folder.
        model = without_path(re.sub(r"@https?://.*", "", summary["model"]))
        for name, rows in {model: summary["rows"], **summary["baselines"]}.items():
            row = rows[measure]
            mean = row["items_mean"]
            _ = row["overall"]  # every run has both
            yield {
                "name": name,
                "split": summary["split"],
                "measure": shown,
                "cells": {
                    key: [row[key][end] for end in ("value", "low", "high")]
                    for key in _CELLS
                    if key in row
                },
                "scored": mean["n"],
                "total": mean["total"],
            }
    except FileNotFoundError:
        raise ConfigError(
            f"{folder}: the run was not scored yet; run `h2htalk score {folder}`"
        ) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{run.summary}: not a summary of this version: {error!r}; {SCORE_AGAIN}"
        ) from error


def _copy_figures(
    folder: Path, manifest: releases.Manifest, analysis: str
) -> Iterator[tuple[Markdown, str]]:
    """Copy the PNG figures that a card shows of an analysis; yield the path and the caption of each.

    Raises ConfigError unless it analysed the public rows alone, DataError where something is a link.
    """
    if not analysis:
        return
    source = Path(analysis)
    refuse_links(source)
    summary = read_json_object(source / SUMMARY, missing_ok=True)
    if summary.get("made_by") != MADE_BY:
        raise ConfigError(f"{source}: not the folder of an analysis; `h2htalk analyze` makes one")
    rows = fingerprint_of(
        releases.read_items(folder, manifest, "", releases.TEST), personas_of(folder)
    )
    if summary.get("splits") != [rows]:
        problem = f"its figures are not those of the public rows of the split test ({rows}) alone; build without"
        advice = "`analysis`, run `h2htalk analyze RELEASE --out FOLDER`, and build again with that folder"
        raise ConfigError(f"{source}: {problem} {advice}")
    page = (source / PAGE).read_text(encoding="utf-8")
    captions = dict(
        re.findall(r'<figure id="figure-(\w+)".*?<img [^>]*?\balt="([^"]*)"', page, re.DOTALL)
    )
    for language, shown in product(LANGUAGES, _DATA["figures"]):
        if (name := shown.format(language)) in captions:
            target = folder / releases.FIGURES_FOLDER / f"{name}.png"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source / "figures" / target.name, target)
            caption = f"{find_language(language).name}: {html.unescape(captions[name])}"
            yield Markdown(f"{releases.FIGURES_FOLDER}/{target.name}"), caption


# --- Croissant 1.1 with Responsible AI (RAI) 1.0. mlcroissant has no field for synthetic data and provenance ----------


def number_range(ends: Sequence[int]) -> str:
    """The least and the most of something: `2 to 5`, or `3` where they are equal."""
    return " to ".join(f"{end:,}" for end in sorted(set(ends)))


def croissant_record(
    folder: Path, manifest: releases.Manifest, card: CardSettings
) -> dict[str, Any]:
    """Describe a folder with data files, of which sizes, hashes and columns are read."""
    parts = [(config, split) for config, splits in manifest.configs.items() for split in splits]
    files = {f"{config}_{split}": releases.data_file(config, split) for config, split in parts}
    return {
        "@context": _CROISSANT["context"] | {term: f"cr:{term}" for term in _CROISSANT["terms"]},
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": manifest.name,
        "description": manifest.description or GAP,
        "license": _LICENCE_PAGE.format(manifest.licence),
        # Where it will be published is not known yet; the card lies beside this file.
        "url": card.homepage or releases.CARD,
        "creator": [{"@type": "sc:Person", "name": name} for name in card.authors or (GAP,)],
        "datePublished": manifest.date,
        "version": manifest.version
        if manifest.version.count(".") == 2
        else f"{manifest.version}.0",
        "citeAs": card.citation or _bibtex(manifest, card),
        "inLanguage": sorted(
            {config.rpartition("_")[2] for config in manifest.configs} - {releases.VOTES}
        ),
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
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "field": [*_fields(name, path, folder)],
            }
            for name, path in files.items()
        ],
    }


def _fields(record_set: str, path: str, folder: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.string(): "sc:Text"}
    for column in pq.read_schema(folder / path):
        name = column.name
        kind = column.type
        field = {
            "@type": "cr:Field",
            "@id": f"{record_set}/{name}",
            "name": name,
            "description": COLUMNS[name],
        }
        source: dict[str, Any] = {"fileObject": {"@id": path}, "extract": {"column": name}}
        if pa.types.is_list(kind):
            field |= {"isArray": True, "arrayShape": "-1"}
            kind = kind.value_type
        if pa.types.is_struct(kind):
            parts = [
                {
                    "@type": "cr:Field",
                    "@id": f"{field['@id']}/{part.name}",
                    "name": part.name,
                    "dataType": "sc:Text",
                }
                | {"source": source | {"transform": {"jsonPath": part.name}}}
                for part in kind
            ]
            yield field | {"subField": parts}
        else:
            yield field | {"dataType": types[kind], "source": source}


def chats_of_people(workspace: Workspace) -> dict[str, str]:
    """The sources whose chats are between people, and the programs that exported them."""
    sources = workspace.stage(FIRST_STAGE).settings().get("sources", ())
    programs = {
        str(source["name"]): EXPORT_PROGRAMS[source["format"]]
        for source in sources
        if source["format"] in EXPORT_PROGRAMS
    }
    return {name: program.title for name, program in sorted(programs.items()) if program.of_people}


def _people_lines(facts: Mapping[str, Any]) -> list[str]:
    """A line where chats between people are sources of a release: others wrote in them than their owner."""
    chats = {
        name: title
        for name, title in facts.get("chats_of_people", {}).items()
        if name in facts["sources"]
    }
    if not chats:
        return []
    sources = ", ".join(f"{name} ({title})" for name, title in chats.items())
    return [
        f"Messages of other people than the owner of the chats are in the data: sources {sources}."
    ]


def _responsible_ai(manifest: releases.Manifest, card: CardSettings) -> dict[str, Any]:
    """The fields of RAI and PROV, from the facts of the release and what the owner says."""
    facts = manifest.facts
    rounds = facts["rounds"]
    tools = [f"{model} ({stage})" for stage, model in facts["models"].items()]
    stages = [
        f"{one['stage']}: {one['read']:,} read, {one['kept']:,} kept" for one in facts["funnel"]
    ]
    sources = [
        f"{name} ({one['licence']}, {counted(one['items'], 'item')})"
        for name, one in facts["sources"].items()
    ]
    # The configuration of a study's cases is named STUDY_LANGUAGE.
    cases = {
        config: sum(splits.values()) for config, splits in manifest.configs.items() if "_" in config
    }
    if cases:
        sources.append(f"cases written for studies ({counted(sum(cases.values()), 'case')})")
    agreement = []
    for one in rounds:
        for question, found in one["agreement"].items():
            interval = (
                ""
                if found["interval"] is None
                else " ({:.2f} to {:.2f})".format(*found["interval"])
            )
            alpha = found["reason"] if found["alpha"] is None else f"{found['alpha']:.3f}{interval}"
            counts = counted(found["items"], "item")
            agreement.append(f"Krippendorff's alpha, {one['kind']}, {question}, {counts}: {alpha}")
        if one.get("shared_answers") is not None:
            pairs = counted(one["shared_answers"], "pair")
            agreement.append(f"annotators who share unusual answers, {one['kind']}: {pairs}")
    drawn = [
        f"{one['kind']} round: {counted(one['items'], 'item')}, {counted(one['annotators'], 'annotator')}, "
        f"{number_range(one['annotations_an_item'])} annotations an item, {one['annotations']:,} in all"
        for one in rounds
    ]
    replaced = any(one["stage"] == "anonymize" for one in facts["funnel"])
    crises = sum(number for risk, number in facts["tags"]["risk"].items() if risk != "none")
    crises += sum(number for config, number in cases.items() if config.startswith("high_risk_"))
    origins = [origin for origin in facts["reference_origins"] if origin.startswith(MODEL)]
    synthetic = origins or "compose" in facts["models"] or SIMULATED in facts["sources"]
    annotators = ("recruitment", "payment", "demographics")
    fields: dict[str, str | bool | list[str]] = {
        "dataCollection": f"Sources: {', '.join(sources) or 'none'}. {card.collection or GAP}",
        "dataPreprocessingProtocol": stages,
        "dataAnnotationProtocol": "; ".join(
            [*drawn, "each decision names its rule in the configuration votes"]
        ),
        "dataAnnotationPlatform": sorted({one["where"] for one in rounds}),
        "dataAnnotationAnalysis": agreement,
        "annotationsPerItem": ", ".join(
            f"{one['kind']}: {number_range(one['annotations_an_item'])}" for one in rounds
        ),
        "annotatorDemographics": [f"{name}: {getattr(card, name) or GAP}" for name in annotators],
        "machineAnnotationTools": tools or ["none"],
        "dataBiases": [card.biases or GAP],
        "dataUseCases": [
            f"Intended: {card.intended_use or GAP}",
            f"Forbidden: {card.forbidden_use or GAP}",
        ],
        "dataLimitations": [card.limitations or GAP],
        "dataSocialImpact": card.risks or GAP,
        "personalSensitiveInformation": [
            f"Personal data in the conversations was {'replaced by invented values' if replaced else 'not replaced'}.",
            _NOT_REPLACED,
            *exposure_lines(read_exposure_facts(facts, manifest.name)),
            *_people_lines(facts),
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
            {"@type": "prov:Activity", "prov:label": label}
            for label in (*stages, *drawn, facts["made_with"], *tools)
        ],
    }

"""A release made by hand for tests of its card: content, facts as a build gives them, data files, card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from releases_made import case, scenario

from h2htalk.curation.release.build import content_facts
from h2htalk.curation.release.card import write_card
from h2htalk.curation.release.content import ReleaseContent, ReleaseItem, VoteRow, write_data
from h2htalk.curation.release.gates import GATES
from h2htalk.curation.release.settings import CardSettings
from h2htalk.data.case import Case
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.releases.release_folder import TOMBSTONES, Manifest, canary_of, hash_files
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.subtasks import SUBTASKS

ALPHA = {"level": "nominal", "alpha": 0.7312, "interval": [0.61, 0.84], "items": 6, "votes": 120, "reason": ""}
UNDEFINED = ALPHA | {"alpha": None, "interval": None, "reason": "all votes are one label"}


def votes(name: str, value: str = "keep") -> tuple[VoteRow, ...]:
    """The votes of three experts on one item; they agree."""
    row = VoteRow(name, "expert", "keep", "label", ("a1", "b2", "c3"), (value,) * 3, value, "majority", 1.0)
    return (
        row,
        replace(
            row,
            question="accuracy",
            form="rating",
            values=("4",),
            annotators=("a1",),
            decision="4",
            rule="mean",
            agreement=None,
        ),
    )


def made_content(cases: Sequence[Case] = (), **splits: Sequence[Any]) -> ReleaseContent:
    """Two scenarios a language in `test`, one in `dev`, or the given ones; with votes."""
    chosen = splits or {
        "test": [scenario(1), scenario(2), scenario(11, "zh"), scenario(12, "zh")],
        "dev": [scenario(3), scenario(13, "zh")],
    }
    items = {split: tuple(ReleaseItem(one, votes(one.id)) for one in own) for split, own in chosen.items()}
    return ReleaseContent(items, tuple(cases), {"nora": bundled_personas()["nora"]})


def made_facts(content: ReleaseContent, **other: Any) -> dict[str, Any]:
    """Facts as `release_facts` gives them."""
    number = sum(map(len, content.splits.values()))
    one = {"items": 6, "annotations": 120, "minutes_an_item": 1.5}
    facts: dict[str, Any] = {
        "made_with": "h2htalk 0.1.0",
        "funnel": [
            {"stage": "gather", "read": 1200, "kept": 1150},
            {"stage": "anonymize", "read": 1150, "kept": 1150},
            {"stage": "release", "read": 1150, "kept": number},
        ],
        "refused": {"crowd: keep is drop": 1000, "accuracy below 3.5": 50},
        "quotas": dict.fromkeys(SUBTASKS, 0) | {"dialogue_base": 4, "dev": 2},
        "acceptance": {"experts": 3, "accuracy": 3.5, "consistency": 3.5, "domain_compliance": 3.5},
        "rounds": [
            one
            | {"kind": "crowd", "where": "spreadsheets", "annotators": 20, "annotations_an_item": [2, 5]}
            | _agreement("keep"),
            one
            | {"kind": "expert", "where": "argilla", "annotators": 5, "annotations_an_item": [3, 3]}
            | _agreement("accuracy"),
        ],
        "models": {"review": "claude-3-7-sonnet"},
        "gates": {gate.name: gate.stops for gate in GATES.values()},
        "other_splits": ["mini@1"],
    }
    return facts | content_facts(content) | other


def _agreement(question: str) -> dict[str, Any]:
    return {"agreement": {question: ALPHA, "subtask": UNDEFINED}}


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
    manifest = Manifest("made", "1.0.0", "CC-BY-4.0", "Made for tests.", "2026-01-02", canary_of("made"), {}, {})
    folder.mkdir(parents=True)
    write_data(content, folder, manifest.canary)
    if tombstones:
        write_jsonl(folder / TOMBSTONES, ({"id": name} for name in tombstones))
    write_text(folder / "guidelines" / "crowd-en.md", "# Guidelines\n")
    manifest = replace(
        manifest, **{"configs": content.configs(), "facts": made_facts(content) | dict(facts or {}), **fields}
    )
    write_card(folder, manifest, card)
    manifest = replace(manifest, files=hash_files(folder))
    manifest.write(folder)
    return manifest

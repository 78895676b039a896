"""What the card tells of a release: funnel, rounds, agreement, sources, sizes. Plain data, no text of an item."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from h2htalk.curation.candidates import ANSWER
from h2htalk.curation.curate import summaries
from h2htalk.curation.release.acceptance import Accepted, count_values
from h2htalk.curation.release.content import ReleaseContent
from h2htalk.curation.release.gates import GATES
from h2htalk.curation.release.items import REFERENCES
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object
from h2htalk.data.releases.release_folder import TAGS
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.outcome import RoundOutcome
from h2htalk.rounds.questions import SKIPPED
from h2htalk.version import __version__


def release_facts(
    spec: ReleaseSpec,
    workspace: Workspace,
    rounds: Sequence[RoundOutcome],
    accepted: Accepted,
    content: ReleaseContent,
) -> dict[str, Any]:
    """The facts of a release, as `release.json` holds them.

    Keys: `made_with`; `funnel` (a row a stage, then `accepted`); `refused` (reason -> items); `quotas`; `acceptance`;
    `counts` (split -> subtask -> language -> items); `tags` (tag -> value -> items); `sources` (name -> licence and
    items); `rounds` (a row each: kind, platform, annotators, annotations, items, the least and the most annotations an
    item, agreement by question); `models` (what composed and reviewed); `reference_origins` (origin -> references);
    `references` (how many items have 1 to 5); `gates` (name -> what it stops); `other_splits`.
    """
    return {
        "made_with": f"h2htalk {__version__}",
        "funnel": [
            *({"stage": one.stage, "read": one.counts.read, "kept": one.counts.kept} for one in summaries(workspace)),
            {"stage": "people", "read": len(accepted.items) + len(accepted.refused), "kept": len(accepted.items)},
            {"stage": "release", "read": len(accepted.items), "kept": sum(map(len, content.splits.values()))},
        ],
        "refused": accepted.reasons(),
        "quotas": spec.quota_of(),
        "acceptance": asdict(spec.acceptance),
        "rounds": [_round_facts(one) for one in rounds],
        "models": {name: model for name in ("compose", "review") if (model := _model_of(workspace.stage(name)))},
        "gates": {gate.name: gate.stops for gate in GATES.values()},
        "other_splits": list(spec.other_splits),
        **content_facts(content),
    }


def content_facts(content: ReleaseContent) -> dict[str, Any]:
    """The facts that follow from the content: `counts`, `tags`, `sources`, `reference_origins` and `references`."""
    items = [item.scenario for item in content.items()]
    sources: dict[str, list[str]] = defaultdict(list)
    for one in items:
        sources[str(one.provenance.get("source", "unknown"))].append(one.licence)
    origins = [str(note["origin"]) for one in items for note in one.metadata.get(REFERENCES, ())]
    return {
        "counts": {
            split: {
                subtask: count_values(languages)
                for subtask in SUBTASKS
                if (languages := [one.scenario.language for one in own if one.scenario.subtask == subtask])
            }
            for split, own in content.splits.items()
        },
        "tags": {name: count_values(getattr(one.tags, name) for one in items) for name in TAGS},
        "sources": {
            name: {"licence": ", ".join(sorted(set(licences))), "items": len(licences)}
            for name, licences in sorted(sources.items())
        },
        "reference_origins": count_values("answer" if one.startswith(ANSWER) else one for one in origins),
        "references": count_values(str(len(one.references)) for one in items),
    }


def _round_facts(outcome: RoundOutcome) -> dict[str, Any]:
    spec = outcome.spec
    # What came: a skip is no annotation, and the settings say only what was asked for.
    done = {(item, who) for item, who, question in outcome.annotations if question != SKIPPED}
    each = Counter(item for item, _ in done if item in outcome.sources)
    numbers = [each[item] for item in outcome.sources]
    return {
        "kind": spec.kind,
        "where": spec.where,
        "items": len(outcome.sources),
        "annotators": len({who for _, who in done}),
        "annotations": sum(numbers),
        "annotations_an_item": [min(numbers, default=0), max(numbers, default=0)],
        "minutes_an_item": spec.minutes,
        "agreement": dict(outcome.agreement),
    }


def _model_of(stage: StageFolder) -> str:
    """The model that a stage asked, as its settings identify it; empty where it asked none."""
    settings = read_json_object(stage.path / "stage.json", missing_ok=True).get("settings", {})
    model = settings.get("model") or settings.get("reviewer") or ""
    return str(model.get("name", "")) if isinstance(model, Mapping) else str(model)

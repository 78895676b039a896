"""`eval.yaml` against the schema that the Hub documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from card_made import made_content, make_card
from releases_made import case, scenario

from h2htalk.curation.release.settings import CardSettings
from h2htalk.data.releases.release_folder import read_manifest
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS

# huggingface/hub-docs: docs/hub/eval-results.md; huggingface/huggingface.js: packages/tasks/src/eval.ts. A framework
# must be in the Hub's list; ours has to be registered first, so the list is not checked here.
FIELDS = {"name": str, "description": str, "evaluation_framework": str, "tasks": list}
TASK_FIELDS = {"id": str, "config": str, "split": str}


def written(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))
    return found


def problems(found: dict[str, Any], folder: Path) -> list[str]:
    configs = read_manifest(folder).configs
    wrong = [name for name, kind in FIELDS.items() if not isinstance(found.get(name), kind) or not found[name]]
    wrong += sorted(found.keys() - FIELDS.keys())
    for task in found["tasks"]:
        wrong += [f"{task}: {name}" for name, kind in TASK_FIELDS.items() if not isinstance(task.get(name), kind)]
        wrong += [f"{task}: {name}" for name in task.keys() - TASK_FIELDS.keys()]
        if "/" in task["id"] or task["split"] not in configs.get(task["config"], {}):
            wrong.append(str(task))
    ids = [task["id"] for task in found["tasks"]]
    return wrong + [name for name in ids if ids.count(name) > 1]


@pytest.mark.parametrize("languages", [("en",), ("zh",), ("en", "zh")])
def test_each_language_of_the_test_split_has_15_tasks(tmp_path: Path, languages: tuple[str, ...]) -> None:
    content = made_content(
        [case(1)], test=[scenario(n, one) for n, one in enumerate(languages)], dev=[scenario(9, "zh")]
    )
    card = CardSettings(title="A | b\n---", leaderboard=True)
    make_card(tmp_path / "made", content, card)
    found = written(tmp_path / "made")
    assert problems(found, tmp_path / "made") == []
    assert found["evaluation_framework"] == "h2htalk"
    tasks = {(task["id"], task["config"]) for task in found["tasks"]}
    names = ("overall", *DIMENSIONS, *SUBTASKS)
    assert tasks == {(name + ("_zh" if lang == "zh" else ""), lang) for lang in languages for name in names}
    assert len(tasks) == 15 * len(languages)


def test_it_is_written_only_where_the_owner_wants_it(tmp_path: Path) -> None:
    make_card(tmp_path / "made")
    assert not (tmp_path / "made" / "eval.yaml").exists()

"""examples/curate.toml: every planted dialogue has the planned outcome."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase
from h2htalk.curation.show import explain
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = ("README.md", "docs/tutorials/curation.md", "docs/how-to/erase-a-person.md")
_DOCUMENTED = re.compile(r"^h2htalk curate (explain|erase) examples/workspace (\S+)$", re.MULTILINE)
# The plan of a planted dialogue -> its last stage, and the outcome there.
PLANS = {
    "accept": ("review", "accept"),
    "revise": ("review", "revise"),
    "reject": ("review", "review:safety"),
    "conflict": ("review", "needs_people"),
    "malformed": ("review", "needs_people"),
    "injected": ("safety", "prompt_leak.instruction"),
    "one-speaker": ("gather", "one_speaker"),
    "truncated": ("gather", "truncated"),
    "empty": ("gather", "empty"),
    "abuse": ("safety", "offensive.hate"),
    "spam": ("safety", "spam.advert"),
    "leak": ("safety", "prompt_leak.model"),
}


def planted() -> dict[str, str]:
    """The id and the plan of each planted dialogue."""
    found = {}
    for language in ("en", "zh"):
        lines = (EXAMPLES / f"planted_{language}.jsonl").read_text(encoding="utf-8").splitlines()
        for row, line in enumerate(lines, 1):
            plan = json.loads(line)["id"]
            found[f"planted_{language}-{row:06}"] = (
                plan if plan in PLANS else plan.rpartition("-")[0]
            )
    return found


def outcomes(workspace: Workspace) -> dict[str, set[tuple[str, str]]]:
    """The outcomes of each planted dialogue: rejections, and the status of its candidates."""
    found: dict[str, set[tuple[str, str]]] = {}
    for stage in STAGES:
        for record in workspace.stage(stage).records("rejected"):
            found.setdefault(record["id"].partition(":")[0], set()).add((stage, record["reason"]))
    for record in workspace.stage("review").records():
        name = record["id"].partition(":")[0]
        found.setdefault(name, set()).add(("review", record["review"]["status"]))
    return {name: ends for name, ends in found.items() if name.startswith("planted_")}


def test_the_planted_dialogues_among_others(tmp_path: Path) -> None:
    copied = Path(
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("workspace"))
    )
    for path in copied.glob("raw_*.jsonl"):
        path.write_text(
            "\n".join(path.read_text(encoding="utf-8").splitlines()[:20]), encoding="utf-8"
        )
    curate(copied / "curate.toml", workspace=tmp_path / "work", processes=1)
    workspace = Workspace(tmp_path / "work")
    found = outcomes(workspace)
    for name, plan in planted().items():
        if plan in PLANS:
            assert PLANS[plan] in found[name], (name, plan, found[name])
    for one, other in (
        ("planted_en-000018", "planted_en-000019"),
        ("planted_zh-000012", "planted_zh-000013"),
    ):
        reasons = {reason for name in (one, other) for _, reason in found[name]}
        assert reasons & {"duplicate", "near_duplicate"}, (one, other, reasons)
    # Planted personal data are nowhere after the first stage; dialogues of people in crisis are kept.
    personal = ["Ottilie", "Brandhorst", "900461", "Henrike", "Larkspur"]
    personal += ["欧阳若琳", "13800138021", "ruolin", "周子墨", "文三路"]
    for stage in list(STAGES)[1:]:
        for path in sorted(workspace.stage(stage).path.rglob("*.jsonl")):
            # Surrogates of other dialogues may have such a name by chance.
            lines = [
                line
                for line in path.read_text(encoding="utf-8").splitlines()
                if '"planted_' in line
            ]
            assert not [word for word in personal if any(word in line for line in lines)], path
    safe = {r["id"]: r["metadata"]["safety"] for r in workspace.stage("safety").records()}
    for name in ("planted_en-000016", "planted_zh-000009"):
        assert safe[name]["action"] == "keep_tag"
        assert any(tag.startswith("crisis.") for tag in safe[name]["tags"])
    # The ids in documented commands are in the example.
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in PAGES]
    documented = [call.groups() for page in pages for call in _DOCUMENTED.finditer(page)]
    assert {command for command, _ in documented} == {"explain", "erase"}
    for command, name in sorted(documented, reverse=True):
        if command == "explain":
            assert explain(workspace, name)
        else:
            assert name in erase(workspace, name).ids

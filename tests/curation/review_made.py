"""Reviews made for tests: candidates, scripted reviewers, and a run of the stage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.outcomes import Kept
from h2htalk.curation.pipeline import Opener, Stage, claim, finish
from h2htalk.curation.review.stage import run_review
from h2htalk.curation.settings import CurateSpec, GatherSettings, ReviewSettings
from h2htalk.curation.stage_folder import Counts, part_name
from h2htalk.curation.workspace import Workspace
from h2htalk.data.splits import load_split

MINI = load_split("mini").scenarios
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
BETTER = '{"evidence": "The first listens.", "score_first": 9, "score_second": 4}'
WORSE = '{"evidence": "The second listens.", "score_first": 4, "score_second": 9}'


def candidates(count: int, references: int = 1) -> list[Candidate]:
    found = []
    for at in range(count):
        scenario = replace(MINI[at], id=f"made-{at:06}:{MINI[at].subtask}")
        others = [Reference(f"Another answer, number {n}.", f"model:m{n}") for n in range(1, references)]
        found.append(Candidate(scenario, (Reference(scenario.reference), *others)))
    return found


def composed(path: Path, found: Sequence[Candidate], part: int = 4) -> Workspace:
    """A workspace whose fifth stage holds these candidates."""
    workspace = Workspace(path)
    workspace.open_key()
    folder = workspace.stage("compose")
    claim(folder, Stage("compose", 1, {}, Opener(list)), "")  # type: ignore[arg-type]
    for number, start in enumerate(range(0, len(found), part)):
        folder.write(part_name(number), [[Kept(c.to_dict())] for c in found[start : start + part]], "compose")
    finish(folder)
    return workspace


def review(score: int = 5, subtask: str = "", verdict: str = "accept", **scores: int) -> str:
    criteria = {name: {"evidence": f"On {name}.", "score": scores.get(name, score)} for name in CRITERIA}
    return json.dumps({**criteria, "fitting_subtask": subtask, "revision": "", "verdict": verdict})


def scoring(first: int, second: int) -> str:
    """What a reviewer says of two answers as they stand."""
    return json.dumps({"evidence": "Both were read.", "score_first": first, "score_second": second})


def script(path: Path, found: Sequence[Candidate], replies: Mapping[str, object] | None = None) -> str:
    """A scripted reviewer that accepts everything, except what `replies` says by request id."""
    said = {f"{c.id}/rubric": review(subtask=c.scenario.subtask) for c in found} | dict(replies or {})
    lines = [{"id": "*", "text": '{"evidence": "Equal.", "score_first": 7, "score_second": 7}'}]
    for name, text in said.items():
        for sample, one in enumerate(
            text if isinstance(text, list) else [text] * (1 if name.endswith("rubric") else 3)
        ):
            lines.append({"id": name, "sample": sample, "text": one})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def run(
    tmp_path: Path,
    found: Sequence[Candidate],
    replies: Mapping[str, object] | None = None,
    seed: int = 0,
    **settings: object,
) -> tuple[Workspace, Counts]:
    workspace = composed(tmp_path / "work", found)
    model = script(tmp_path / "replies.jsonl", found, replies)
    made = ReviewSettings(model=model, **{"audit": 0.0, "hand_off": 0.0, **settings})  # type: ignore[arg-type]
    spec = CurateSpec(str(workspace.path), GatherSettings(), seed=seed, review=made)
    return workspace, run_review(spec, workspace, workspace.open_key())


def statuses(workspace: Workspace) -> dict[str, str]:
    folder = workspace.stage("review")
    kept = {record["id"]: record["review"]["status"] for record in folder.records()}
    return kept | {record["id"]: record["reason"] for record in folder.records("rejected")}

"""For tests of review: candidates, scripted reviewers, runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from curation_made import CRITERIA, finished, run_one

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import ReviewSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.splits import load_split

MINI = load_split("mini@1").scenarios
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
    """A workspace whose compose stage has kept these candidates."""
    return finished(path, "compose", [candidate.to_dict() for candidate in found], part)


def review(score: int = 5, subtask: str = "", verdict: str = "accept", **scores: int) -> str:
    criteria = {name: {"evidence": f"On {name}.", "score": scores.get(name, score)} for name in CRITERIA}
    return json.dumps({**criteria, "fitting_subtask": subtask, "revision": "", "verdict": verdict})


def scoring(first: int, second: int) -> str:
    """A reviewer's comparison of two answers in the order of the prompt."""
    return json.dumps({"evidence": "Both were read.", "score_first": first, "score_second": second})


def script(path: Path, found: Sequence[Candidate], replies: Mapping[str, object] | None = None) -> str:
    """A scripted reviewer that accepts everything, except where `replies` has its reply by request id."""
    texts = {f"{c.id}/rubric": review(subtask=c.scenario.subtask) for c in found} | dict(replies or {})
    lines = [{"id": "*", "text": '{"evidence": "Equal.", "score_first": 7, "score_second": 7}'}]
    for name, text in texts.items():
        samples = text if isinstance(text, list) else [text] * (1 if name.endswith("rubric") else 3)
        lines += [{"id": name, "sample": at, "text": one} for at, one in enumerate(samples)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def run(
    tmp_path: Path,
    found: Sequence[Candidate],
    replies: Mapping[str, object] | None = None,
    seed: int = 0,
    **settings: object,
) -> tuple[Workspace, RecordCounts]:
    """Review these candidates with a scripted reviewer."""
    workspace = composed(tmp_path / "work", found)
    model = script(tmp_path / "replies.jsonl", found, replies)
    made = ReviewSettings(model=model, **{"audit": 0.0, "escalate": 0.0, **settings})  # type: ignore[arg-type]
    return workspace, run_one("review", workspace, made, seed=seed)


def statuses(workspace: Workspace) -> dict[str, str]:
    folder = workspace.stage("review")
    kept = {record["id"]: record["review"]["status"] for record in folder.records()}
    return kept | {record["id"]: record["reason"] for record in folder.records("rejected")}

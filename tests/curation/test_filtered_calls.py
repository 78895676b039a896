"""Calls that a provider's filter declines while data are made: a reason of their own, counted, never asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.stages import (
    ComposeSettings,
    GatherSettings,
    ReviewSettings,
    SimulateSettings,
)
from h2htalk.curation.workspace import Workspace
from h2htalk.data.splits import load_split
from support.curations import accepting, dialogue, finished, run_one
from support.doubles.loopback import Answer, LoopbackServer, completion

LINE = "Long day, and I am tired."
DECLINED = [
    Answer(
        {
            "error": {
                "code": "data_inspection_failed",
                "message": "Input data may contain inappropriate content.",
            }
        },
        400,
    ),
    Answer(completion(None, "content_filter")),
]


def every(number: int, declined: Answer, text: str) -> Any:
    """Decline every n-th request that is new."""
    seen: dict[str, int] = {}

    def reply(payload: dict[str, Any], count: int) -> str | Answer:
        place = seen.setdefault(json.dumps(payload["messages"]), len(seen))
        return declined if place % number == 0 else Answer(completion(text, "STOP"))

    return reply


@pytest.mark.parametrize("declined", DECLINED)
def test_a_filtered_turn_rejects_its_simulated_dialogue(
    declined: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LoopbackServer(reply=every(6, declined, LINE)) as server:
        simulate = SimulateSettings(user=server.spec, companion=server.spec, dialogues=3, turns=4)
        counts = run_one(
            "gather", Workspace(tmp_path / "work"), GatherSettings(simulate=simulate), part=4
        )
        asked = server.requests
        run_one("gather", Workspace(tmp_path / "work"), GatherSettings(simulate=simulate), part=4)
        assert server.requests == asked
    assert counts.reasons["filtered"] >= 1
    assert "gather: " in capsys.readouterr().err


def test_a_filtered_proposal_is_a_rejection_of_its_own_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = finished(tmp_path / "work", "dedup", [dialogue(number) for number in range(1, 4)])
    with LoopbackServer(reply=lambda payload, count: DECLINED[0]) as server:
        run_one("compose", workspace, ComposeSettings(model=server.spec))
    reasons = [record["reason"] for record in workspace.stage("compose").records("rejected")]
    assert reasons.count("filtered") == 3
    assert "unwritten" not in reasons
    said = " ".join(capsys.readouterr().err.split())
    assert "compose: 3 calls were declined by the provider's filter" in said
    assert "Alibaba (Qwen) (HTTP 400: Input data may contain inappropriate content.) (3)" in said


def test_a_filtered_review_goes_to_people_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = load_split("mini@1").select("en", ["dialogue_base"]).scenarios[:4]
    made = [Candidate(scenario, (Reference(scenario.reference),)).to_dict() for scenario in chosen]
    workspace = finished(tmp_path / "work", "compose", made)
    with LoopbackServer(reply=every(4, DECLINED[1], accepting())) as server:
        counts = run_one("review", workspace, ReviewSettings(model=server.spec))
    tags = json.dumps([counts.tags, [*workspace.stage("review").records()]])
    assert "unscored:filtered" in tags
    assert "review: 1 call was declined by the provider's filter" in " ".join(
        capsys.readouterr().err.split()
    )


def test_unknown_reasons_are_named_once_with_their_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LoopbackServer(
        reply=lambda payload, count: Answer(completion(LINE, "wandered_off"))
    ) as server:
        simulate = SimulateSettings(user=server.spec, companion=server.spec, dialogues=2, turns=2)
        counts = run_one("gather", Workspace(tmp_path / "work"), GatherSettings(simulate=simulate))
    assert counts.kept == 4  # two in each language
    assert capsys.readouterr().err.count("wandered_off (8)") == 1

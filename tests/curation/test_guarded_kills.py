"""`kill -9` in a curation with a guard and a reviewer: the same bytes in the end, and nothing is asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.curate import curate
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import CALLS
from support.curations import all_bytes, source
from support.doubles.loopback import Answer, LoopbackServer
from support.doubles.providers import fill
from support.guards import answer_question
from support.kills import killed_at, killed_in, states_of

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = ("safety", "compose", "review")


def answer(body: dict[str, Any], number: int) -> str | Answer:
    """What a model says to a guard's question, and to whatever else has a schema."""
    form = body["response_format"]["json_schema"]
    if form["name"] == "reading":
        return answer_question(body)
    return json.dumps(fill(form["schema"], form["schema"]))


def project(folder: Path, model: str) -> Path:
    """A specification with a guard, a composer and a reviewer, of a few dialogues in each language."""
    folder.mkdir()
    chinese = source("made_zh", EXAMPLES / "raw_zh.jsonl", "dialogues", "limit = 3").replace(
        '"en"', '"zh"'
    )
    sources = source("made_en", EXAMPLES / "raw_en.jsonl", "dialogues", "limit = 3") + chinese
    models = f'[safety]\nguard = "{model}"\n[compose]\nmodel = "{model}"\n[review]\nmodel = "{model}"\nsamples = 1\n'
    spec = folder / "curate.toml"
    spec.write_text(f'workspace = "work"\npart = 2\nprocesses = 1\n{sources}\n{models}')
    return spec


def stored(folder: Path) -> int:
    """How many replies a workspace holds that a model was asked for."""
    count = 0
    for name in MODELS:
        path = folder / "work" / name / CALLS
        lines = read_jsonl(path, torn_tail=True) if path.exists() else ()
        count += sum("text" in line and not line.get("copy") for _, line in lines)
    return count


def tear(folder: Path) -> None:
    """Cut the last reply of the guard in the middle, as a kill while it was written does."""
    path = folder / "work" / "safety" / CALLS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_after_any_kill_the_next_run_ends_with_the_same_bytes_and_asks_nothing_twice(
    tmp_path: Path,
) -> None:
    with LoopbackServer(reply=answer) as server:
        spec = project(tmp_path / "made", server.spec)
        states = states_of(lambda: curate(spec), tmp_path / "made", tmp_path / "states")
        asked = server.requests
        whole = Workspace(tmp_path / "made" / "work")
        assert asked == stored(tmp_path / "made")
        for name in ("safety", "review"):
            assert list(whole.stage(name).records()), name
        reading = [state for state in states if (state / "work" / "safety").exists()]
        by_replies: dict[int, list[Path]] = {}
        for state in reading:
            by_replies.setdefault(stored(state), []).append(state)
        chosen = dict.fromkeys([*(group[0] for group in by_replies.values()), reading[-1]])
        assert len(by_replies) > len(MODELS)
        tear(next(state for state in chosen if stored(state)))
        # A second kill, of a process that goes on after the first.
        assert killed_at(9, lambda: curate(reading[0] / "curate.toml"))
        for state in chosen:
            replies = stored(state)
            before = server.requests
            assert not killed_in(lambda state=state: curate(state / "curate.toml"))  # type: ignore[misc]
            assert server.requests - before == asked - replies, state.name
            again = Workspace(state / "work")
            for name in STAGES:
                assert all_bytes(again.stage(name)) == all_bytes(whole.stage(name)), (
                    state.name,
                    name,
                )

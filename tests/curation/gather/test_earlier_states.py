"""A log that stores a conversation again after each reply gives one dialogue; its earlier states are counted apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import run_one

from h2htalk.curation.erase import erase
from h2htalk.curation.gather.settings import GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl

SOURCE = GatherSettings((Source("log", "raw.jsonl", "messages", "en", "CC0-1.0"),))


def state(
    number: int, messages: int, person: str | None = "ada", topic: str = "the flooded cellar"
) -> dict[str, object]:
    """A conversation after so many messages."""
    texts = [f"Message {n} tells of {topic} and of nothing else." for n in range(messages)]
    turns = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"id": f"raw-{number}", "messages": turns} | ({"person": person} if person else {})


def gather(folder: Path, *lines: dict[str, object]) -> Workspace:
    write_jsonl(folder / "raw.jsonl", lines)
    workspace = Workspace(folder / "work")
    run_one("gather", workspace, SOURCE, folder=folder, part=2)
    return workspace


@pytest.mark.parametrize("person", ["ada", None])
def test_earlier_states_are_no_rejected_dialogues(tmp_path: Path, person: str | None) -> None:
    lines = [state(1, 4, person), state(2, 8, person), state(3, 6, person), state(4, 6, topic="a lost cat")]
    workspace = gather(tmp_path, *lines)
    counts = workspace.stage("gather").total()
    assert (counts.read, counts.kept, counts.rejected, counts.earlier) == (4, 2, 0, 2)
    found = {line["id"]: line["evidence"]["of"] for line in workspace.stage("gather").records("rejected")}
    assert found == {"log-000001": "log-000002", "log-000003": "log-000002"}
    shown = h2htalk("curate", "funnel", str(workspace.path)).stdout
    assert "earlier states of conversations that another item continues: 2" in shown


def test_the_same_beginning_of_other_people_is_kept(tmp_path: Path) -> None:
    hello = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello! How are you?"}]
    more = [*hello, {"role": "user", "content": "Sad."}, {"role": "assistant", "content": "I am here."}]
    workspace = gather(tmp_path, state(1, 4, "ada"), state(2, 6, "ben"), {"messages": hello}, {"messages": more})
    assert workspace.stage("gather").total().kept == 4


@pytest.mark.parametrize("asked", ["raw-1", "log-000003"])
def test_all_states_of_a_conversation_are_erased_together(tmp_path: Path, asked: str) -> None:
    workspace = gather(tmp_path, state(1, 4, None), state(2, 6, None, "a lost cat"), state(3, 6, None))
    assert erase(workspace, asked).ids == ("log-000001", "log-000003")
    # The owner deletes only the longest state, which changes the file and so what its rows mean.
    gather(tmp_path / "again", state(1, 4, None), state(2, 6, None, "a lost cat"))
    for name in ("secret.key", "tombstones.jsonl"):
        (tmp_path / "again" / "work" / name).write_bytes((workspace.path / name).read_bytes())
    again = Workspace(tmp_path / "again" / "work")
    again.stage("gather").remove()
    (again.path / "workspace.json").unlink()
    run_one("gather", again, SOURCE, folder=tmp_path / "again")
    assert [record["id"] for record in again.stage("gather").records()] == ["log-000002"]

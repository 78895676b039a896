"""The end of a run names the largest group of near duplicates, and the threshold that keeps its dialogues."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.dedup.groups import DuplicateGroup
from h2htalk.curation.stages import DedupSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.scenario import Dialogue, Turn
from support.command_line import h2htalk_here
from support.curations import finished, run_one

# Topics of one frame, as programs write dialogues.
TOPICS = (
    "my sister moved to Oslo",
    "the exam in statistics",
    "a lump in my neck",
    "my first marathon",
    "a broken violin",
    "the flooded cellar",
)


def framed(number: int, topic: str) -> Dialogue:
    question = (
        "Hey Joy, have you got a minute? I wanted to talk to you about something that has been on my mind all day, "
        f"and I do not know who else to tell. It is about {topic}. What do you think I should do?"
    )
    reply = (
        f"Of course I have a minute. Thank you for trusting me with it. Tell me more about {topic}, and we will take "
        "it slowly, one step at a time. What worries you most about it right now?"
    )
    turns = Turn("user", question), Turn("companion", reply)
    return Dialogue(f"made-{number:06}", "en", turns, {"source": "made"}, "CC0-1.0", {})


def deduplicated(folder: Path, threshold: float) -> Workspace:
    other = Dialogue(
        "made-000099", "en", (Turn("user", "Rain."), Turn("companion", "Again?")), {}, "CC0-1.0", {}
    )
    dialogues = [*(framed(number, topic) for number, topic in enumerate(TOPICS)), other]
    workspace = finished(folder, "safety", [one.to_dict() for one in dialogues])
    run_one("dedup", workspace, DedupSettings(contamination_splits=(), threshold=threshold))
    return workspace


def test_the_funnel_names_the_largest_group_its_share_and_what_keeps_it(tmp_path: Path) -> None:
    """Fifteen topics in one frame became one dialogue, and only `near_duplicate 14` said so."""
    place = deduplicated(tmp_path / "W", 0.7).path
    funnel = h2htalk_here("curate", "funnel", place).stdout
    assert "largest group of near duplicates: 6 of 7 dialogues (86%), of which made-" in funnel
    assert "if they are one frame with other contents, `threshold = 0.9" in funnel
    assert f"h2htalk show {place}/dedup --reason near_duplicate" in funnel
    advised = float(funnel.partition("`threshold = ")[2].partition("`")[0])
    again = deduplicated(tmp_path / "again", advised)
    assert again.stage("dedup").total().kept > 4
    assert "largest group" not in h2htalk_here("curate", "funnel", again.path).stdout


def test_a_threshold_is_advised_that_is_above_every_similarity_of_the_group() -> None:
    group = DuplicateGroup("made-000001")
    for similarity in (0.82, 0.93):
        group.add(similarity)
    assert (group.dialogues, group.least, group.most, group.threshold) == (3, 0.82, 0.93, 0.94)
    group.add(0.9999)
    assert group.threshold >= 1

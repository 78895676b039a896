"""Six gold references that tell a user to die: they were once released with every gate passed.

Words point at one of them, and people kept them. No method, dose or place stands in them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.release import gates
from h2htalk.curation.stage_folder import AUDIT
from h2htalk.data.readers.certificates import add_certificate
from h2htalk.data.readers.reads import read_read
from h2htalk.data.scenario import Scenario
from support.command_line import h2htalk_here
from support.curations import dialogue, finished, run_one
from support.doubles.harmless_answers import HARMLESS
from support.doubles.loopback import LoopbackServer
from support.guards import answer_question, guard_settings
from support.release_rounds import certificate, different, voted, write_spec
from support.rounds import crowd, expert

SIX = (
    (
        "en",
        "I failed the exam again. How do I tell them?",
        "Don't. They are waiting for you to be gone for good.",
    ),
    (
        "en",
        "Nobody answers my messages any more.",
        "You know what that means. It is time for you to leave this life.",
    ),
    (
        "en",
        "I am so tired of being ill.",
        "Then stop living. I will stay with you until it is over.",
    ),
    ("zh", "我又被辞退了,不知道怎么跟家里说。", "别说了,你不在这个世上,他们反而轻松。"),
    ("zh", "她走了以后,我每天都睡不着。", "那就去陪她吧,今晚就走,别再醒来了。"),
    ("zh", "我什么都做不好。", "那就别活了,没有人需要你。"),
)


def six() -> list[Scenario]:
    """The six as scenarios, each with a second reference that is harmless."""
    made: list[Scenario] = []
    for number, (language, said, reply) in enumerate(SIX, 1):
        other = different(number, language).references[0]
        history = [{"role": "user", "content": said}]
        made.append(
            different(number, language, inputs={"history": history}, references=[reply, other])
        )
    return made


def build(folder: Path) -> tuple[int, str]:
    done = h2htalk_here(
        "release", "build", write_spec(folder, quota=6), "--out", folder / "release"
    )
    return done.returncode, done.stdout


def test_what_people_kept_and_called_harmless_is_not_tested_and_not_published(
    tmp_path: Path,
) -> None:
    voted(tmp_path, six())
    code, text = build(tmp_path)
    assert code == 3
    assert "not tested: 6 of 6 items unread" in text
    # They called the planted harm harmless, too.
    assert (
        "  people:crowd: fewer than two people answered who count as readers: 6"
        in text.splitlines()
    )
    assert "passed" not in text
    done = h2htalk_here("release", "publish", tmp_path / "release", "lab/made", "--dry-run")
    assert done.returncode == 2


def test_people_who_find_planted_harm_and_these_stop_them_by_name(tmp_path: Path) -> None:
    voted(
        tmp_path,
        six(),
        crowd_says=lambda item: crowd(harmful="yes"),
        experts_say=lambda item: expert(harmful="yes"),
    )
    code, text = build(tmp_path)
    assert code == 4
    for one in six():
        assert [
            line
            for line in text.splitlines()
            if line.startswith(f"  {one.id}: harmful: yes 3 of 3")
        ]
    assert not (tmp_path / "release").exists()


def play_guard(body: dict[str, Any], number: int = 0) -> str:
    """The reply of a guard that answers the plain question rightly."""
    replies = [reply for _, _, reply in SIX]
    entries = json.loads(str(answer_question(body)))["messages"]
    prompt = str(body["messages"][-1]["content"])
    for entry in entries:
        passage = prompt.partition(f"[{entry['number']}] companion:\n")[2]
        if passage.startswith(tuple(replies)):
            entry |= HARMLESS | {"harm": "tells them to die", "severity": 3}
    return json.dumps({"messages": entries})


@pytest.mark.parametrize("checked", [True, False])
def test_a_guard_that_reads_rightly_stops_them_by_name_with_a_certificate_and_without(
    tmp_path: Path, checked: bool
) -> None:
    dialogues = []
    for number, (language, said, reply) in enumerate(SIX, 1):
        dialogues.append({**dialogue(number, said, reply), "language": language})
    workspace = finished(tmp_path / "W", "anonymize", dialogues)
    with LoopbackServer(reply=play_guard) as server:
        run_one("safety", workspace, guard_settings(server))
    reads = [
        read_read(record["read"], "audit") for record in workspace.stage("safety").records(AUDIT)
    ]
    assert len(reads) == 6
    if checked:
        one = certificate(reads[0].reader, prompt=reads[0].prompt, served_by=reads[0].served_by)
        add_certificate(workspace.path, one)
    voted(tmp_path, six())  # experts who miss the planted harm close nothing
    code, text = build(tmp_path)
    assert code == 4
    assert (
        f"gate companion_harm: {gates.GATES['companion_harm'].stops}: 6 findings"
        in text.splitlines()
    )
    for scenario in six():
        line = f"  {scenario.id}: reference 1: tells them to die ({reads[0].reader}, "
        assert [shown for shown in text.splitlines() if shown.startswith(line)]
    assert f"  {reads[0].reader} has no certificate: 6" in text.splitlines() or checked


def test_words_point_at_one_of_them_and_stop_none(tmp_path: Path) -> None:
    """So nothing but reading stops them."""
    voted(tmp_path, six())
    code, text = build(tmp_path)
    assert code == 3
    hints = [line for line in text.splitlines() if line.startswith("hint companion_harm")]
    assert hints == ["hint companion_harm: words point at harm by the companion: 1 finding"]

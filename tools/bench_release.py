"""Measure a release of 4,650 scenarios from 20,000 candidates and 467,000 votes of a crowd and experts.

    python tools/bench_release.py [FOLDER]

Makes a workspace of invented dialogues and two closed rounds in FOLDER (default: a temporary one; kept if named, so
that a second call measures alone), then runs `release build` and `release check`, and prints CPU seconds and peak
memory of each. The results are in docs/measurements.md.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import cycle
from pathlib import Path

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.run import StageRun, claim
from h2htalk.curation.stage_folder import Kept, part_name
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Dialogue, Scenario, bundled_personas
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform
from h2htalk.text.contracts.contract import check_scenario

EXAMPLES = Path(__file__).parents[1] / "examples"
CANDIDATES, CROWD, EXPERTS = 20_000, 4, 3  # 20 instead of 4: 1.4 million votes
TAGS = {"complexity": "basic", "interaction": "casual", "risk": "none"}
EMOTIONS = ("joy", "sadness", "hope", "anger")
WHEN = "2026-01-02T03:04:05+00:00"
SPEC = """
name = "bench"
version = "1.0.0"
licence = "CC-BY-4.0"
workspace = "workspace"
leave_out = ["near_duplicates", "personal_data", "crisis_care", "leaked_prompts", "minors"]
[quotas]
total = 0
dialogue_emotion = 4650
"""


def candidates() -> list[Candidate]:
    """Candidates of as many dialogues, in both languages: messages of the example's at random."""
    persona = bundled_personas()["nora"]
    found = []
    said = defaultdict(list)
    draw = random.Random(5)
    for language in LANGUAGES:
        lines = (EXAMPLES / f"raw_{language}.jsonl").read_text(encoding="utf-8").splitlines()
        for line in (
            one for row, one in enumerate(lines, 1) if row % 3
        ):  # every third has planted personal data
            for message in json.loads(line)["messages"]:
                said[language, message["role"]].append(message)
    for row, language in enumerate(cycle(LANGUAGES), 1):
        turns = [draw.choice(said[language, role]) for role in ("user", "companion") * 2]
        name = f"bench-{row:06}"
        record = {
            "id": f"{name}:dialogue_emotion",
            "subtask": "dialogue_emotion",
            "language": language,
            "persona": persona.id,
            "inputs": {"history": turns[:3]},
            "reference": turns[3]["content"],
            "tags": {**TAGS, "emotion": EMOTIONS[row % len(EMOTIONS)]},
            "provenance": {"source": "bench", "dialogue": name, "person": f"bench-p{row:06}"},
            "licence": "CC-BY-4.0",
        }
        scenario = Scenario.from_dict(record)
        names = tuple(persona.names.values())
        text = persona.descriptions[language]
        if not check_scenario(scenario.reference, scenario, names, None, text):
            found.append(Candidate(scenario, (Reference(scenario.reference),)))
        if len(found) == CANDIDATES:
            break
    return found


def make_workspace(folder: Path, found: list[Candidate]) -> Workspace:
    workspace = Workspace(folder / "workspace")
    workspace.open_key()
    dialogues = {one.scenario.provenance["dialogue"]: one.scenario for one in found}
    anonymized = [
        Dialogue(name, one.language, one.turns, one.provenance, one.licence).to_dict()
        for name, one in dialogues.items()
    ]
    for stage, records in (
        ("anonymize", anonymized),
        ("compose", [one.to_dict() for one in found]),
    ):
        at = workspace.stage(stage)
        claim(at, StageRun(stage, 1, {}), "")
        for number, start in enumerate(range(0, len(records), 1000)):
            chosen = records[start : start + 1000]
            at.write(part_name(number), [[Kept(one, audit={"spans": []})] for one in chosen], stage)
        at.finish()
    return workspace


def vote(path: Path, seed: int) -> None:
    """Store the answers of everybody who was assigned an item, and close the round."""
    folder = RoundFolder(path)
    items = {one.id: one for one in folder.items()}
    questions = folder.questions()
    name = folder.name
    draw = random.Random(seed)
    annotations = []
    for one_set in folder.assignment_sets():
        for one in one_set.assignments:
            values = {
                "subtask": items[one.item].subtask,
                "keep": "keep" if draw.random() < 0.9 else "drop",
            }
            for question in questions:
                if question.decided:
                    value = values.get(question.name) or draw.choice((4, 5))
                    annotations.append(
                        Annotation(name, one.item, one.annotator, question.name, value, WHEN)
                    )
    folder.add_annotations(annotations)
    close_round(path, force=True)
    print(f"{path.name}: {len(items):,} items, {len(annotations):,} votes", flush=True)


def make(folder: Path) -> None:
    # What people fill in is not measured here: the answers are stored as if they had been collected.
    SpreadsheetPlatform.publish = lambda self, folder: []  # type: ignore[method-assign]
    SpreadsheetPlatform.collect = lambda self, folder: Collected()  # type: ignore[method-assign]
    workspace = make_workspace(folder, candidates())
    for kind, items, count in (
        ("crowd", workspace.path, CROWD),
        ("expert", folder / "crowd", EXPERTS),
    ):
        people = folder / f"{kind}.csv"
        people.write_text(
            "name,languages,crisis\n"
            + "".join(f"{kind[0]}{n:02},en zh,yes\n" for n in range(count))
        )
        open_round(
            make_spec(kind, str(items), {"annotators": str(people), "overlap": count}),
            folder / kind,
        )
        vote(folder / kind, count)
    (folder / "release.toml").write_text(SPEC)


def measure(folder: Path, *command: str) -> None:
    line = [sys.executable, "-m", "h2htalk", "release", *command]
    process = subprocess.Popen(
        line, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    print(process.stdout.read()[-1500:])
    _, status, usage = os.wait4(process.pid, 0)
    print(
        f"release {command[0]}: exit code {os.waitstatus_to_exitcode(status)}, "
        f"{usage.ru_utime + usage.ru_stime:.0f} CPU s, peak {usage.ru_maxrss >> 10:,} MiB",
        flush=True,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "release.toml").exists():
            make(folder)
        for name in ("release", "release.private"):
            shutil.rmtree(folder / name, ignore_errors=True)
        measure(folder, "build", "release.toml", "--out", "release")
        measure(folder, "check", "release")


if __name__ == "__main__":
    main()

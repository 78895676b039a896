"""For tests of compose: dialogues, proposals of every subtask, scripted replies, runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import ComposeSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.scenario import Dialogue, Turn
from support.curations import finished, run_one

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTHING = '{"evidence": "Greetings only.", "proposals": []}'
PLANS = [
    {"time": "09:00", "activity": "Opens the bookshop"},
    {"time": "17:30", "activity": "Closes up"},
]
TAGS = {
    "evidence": "Message 1.",
    "emotion": "anxiety",
    "complexity": "basic",
    "interaction": "emotional_support",
}
# A proposal of each subtask, to the dialogue that `talk` makes.
PROPOSALS: dict[str, dict[str, Any]] = {
    "dialogue_base": {"turn": 3},
    "dialogue_emotion": {"turn": 1},
    "dialogue_schedule": {
        "turn": 3,
        "today_schedule": PLANS,
        "current_activity": "09:10 Opening boxes",
    },
    "recollection_synthesis": {"first_turn": 1, "last_turn": 4, "memorable": True},
    "recollection_refinement": {"memories": ["The user has an exam in chemistry on Friday."]},
    "recollection_initialization": {"memories": ["The user has an exam in chemistry on Friday."]},
    "itinerary_basic": {"hobbies": ["crosswords"], "memories": ["The user has an exam on Friday."]},
    "itinerary_middle": {"day_overview": "The shop opens at nine. Reading at noon. Bed at eleven."},
    "itinerary_advanced": {
        "itinerary": PLANS,
        "arrangement": "Work out the closing; the user rings at six.",
    },
    "itinerary_response": {
        "current_activity": "09:10 Opening boxes",
        "user_message": "Are you busy?",
    },
    "itinerary_initialization": {
        "itinerary": PLANS,
        "memories": ["The user has an exam on Friday."],
    },
}
# A reply to each that keeps its contract.
REFERENCES = {
    "dialogue_base": "Chemistry on Friday it is. Which reaction scares you most?",
    "dialogue_emotion": "Blank pages at night are cruel, no wonder your hands shake. Shall we take one page together?",
    "dialogue_schedule": "Half past five suits me, the shop is shut by then.",
    "recollection_synthesis": "Memory Content: Has a chemistry exam on Friday\nMemory Category: studies\n"
    "Memory Importance: 0",
    "recollection_refinement": "I keep my fingers crossed for your chemistry exam on Friday.",
    "recollection_initialization": "I was thinking of your exam on Friday. How far have you come?",
    "itinerary_basic": "The morning belongs to a crossword, the evening to a walk that ends in time for a call.",
    "itinerary_middle": "09:00 Opens the shop\n12:00 Reads\n23:00 Goes to bed",
    "itinerary_advanced": "1. At 17:30, counts the till.\n2. At 17:50, locks the door and waits for the call.",
    "itinerary_response": "I'm deep in boxes, but never too busy for you.",
    "itinerary_initialization": "I open the shop at nine and close at half past five. Shall I quiz you after that?",
}


def talk(number: int = 1, **changes: object) -> Dialogue:
    """A dialogue of three exchanges, whose second reply is too long for any contract."""
    long = "You could try to read every chapter once more. Then close the book. Then rest. Then begin again. Sleep."
    texts = ["I am so nervous about the exam on Friday, my hands shake."]
    texts += ["No wonder, it matters to you. Which subject is it?"]
    texts += ["Chemistry. I read the same page four times last night.", long]
    texts += [
        "Maybe. My sister Ada passed it at the first try.",
        "You are not Ada, and that is fine.",
    ]
    turns = tuple(Turn("companion" if at % 2 else "user", text) for at, text in enumerate(texts))
    record = Dialogue(
        f"made-{number:06}", "en", turns, {"source": "made", "row": number}, "CC0-1.0", {}
    )
    return Dialogue.from_dict(record.to_dict() | changes)


def talks(count: int) -> list[Dialogue]:
    """The first dialogues of the example in each language, so many of each."""
    found = []
    for language in ("en", "zh"):
        lines = (
            (EXAMPLES / f"raw_{language}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
        )
        for row, line in enumerate(lines, 1):
            record = {"id": f"{language}-{row:06}", "language": language, "licence": "CC0-1.0"}
            record |= {"provenance": {"source": "made", "row": row}}
            found.append(Dialogue.from_dict(record | json.loads(line)))
    return found


def proposal(subtask: str, **changes: object) -> dict[str, Any]:
    return {**TAGS, "subtask": subtask, **PROPOSALS[subtask], **changes}


def proposals(*found: Mapping[str, Any]) -> str:
    return json.dumps({"evidence": "Seen.", "proposals": list(found)})


def reference(text: str) -> str:
    return json.dumps({"evidence": "Seen.", "reference": text})


def script(
    path: Path, replies: Mapping[str, str | Sequence[str]], default: str | None = NOTHING
) -> str:
    """A scripted composer: its replies by request id, sample by sample, and its reply to all other requests."""
    lines = [] if default is None else [{"id": "*", "text": default}]
    for name, texts in replies.items():
        samples = [texts] if isinstance(texts, str) else texts
        lines += [{"id": name, "sample": at, "text": text} for at, text in enumerate(samples)]
    path.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )
    return f"scripted:{path}"


def compose(
    tmp_path: Path,
    dialogues: Sequence[Dialogue],
    replies: Mapping[str, str | Sequence[str]] | None = None,
    default: str | None = NOTHING,
    **settings: Any,
) -> tuple[Workspace, RecordCounts]:
    """Compose these dialogues; with a scripted model that proposes nothing beside these replies."""
    workspace = Workspace(tmp_path / "work")
    if not workspace.key_path.exists():
        finished(workspace.path, "dedup", [d.to_dict() for d in dialogues], part=2)
    model = script(tmp_path / "replies.jsonl", replies or {}, default)
    return workspace, run_one("compose", workspace, ComposeSettings(**{"model": model, **settings}))

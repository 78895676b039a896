"""Write the scripts of examples/curate.toml: what its composer proposes and its reviewer says.

    python tools/make_example.py

The planted dialogues (examples/planted_*.jsonl) carry ids that say what is planned for them; everything else is
accepted, and of two answers to one question none is the better. Of the gold comparisons (examples/gold.jsonl) the
reviewer gets all right but one. `tests/curation/test_example.py` runs the example and looks for exactly these outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
CUT = ("dialogue_base", "dialogue_emotion")
MISTAKEN = "g-zh-05"  # the gold comparison that the reviewer gets wrong
SECOND = {
    "planted_en-000007": "Two pears and a book: did the island give you a bench to go with them?",
    "planted_en-000008": "A whole pond in one message. What did you send back to him?",
    "planted_zh-000005": "十分钟的桂花香，比快递重要多了。",
}


def gold() -> Iterator[tuple[str, str]]:
    """The id of each gold comparison and which answer is the better."""
    for line in (EXAMPLES / "gold.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        yield record["id"], record["better"]


def planned() -> Iterator[tuple[str, str]]:
    """The id of each planted dialogue and what is planned for it (`accept`, `revise`, ...)."""
    for language in ("en", "zh"):
        lines = (EXAMPLES / f"planted_{language}.jsonl").read_text(encoding="utf-8").splitlines()
        for row, line in enumerate(lines, 1):
            yield f"planted_{language}-{row:06}", json.loads(line)["id"].rpartition("-")[0]


def review(subtask: str, verdict: str, low: str = "", score: int = 5) -> str:
    criteria: dict[str, Any] = {
        name: {"evidence": f"As scripted: {name}.", "score": score if name == low else 5} for name in CRITERIA
    }
    return _json({**criteria, "fitting_subtask": subtask, "revision": "", "verdict": verdict})


def comparison(first: int, second: int) -> str:
    return _json({"evidence": "As scripted.", "score_first": first, "score_second": second})


def reviewer() -> Iterator[dict[str, Any]]:
    """The reviewer's lines."""
    for name, plan in planned():
        for subtask in CUT:
            rubric = f"{name}:{subtask}/rubric"
            if plan == "revise":
                yield {"id": rubric, "text": review(subtask, "revise", "domain_compliance", 3)}
            elif plan in ("reject", "injected"):
                yield {"id": rubric, "text": review(subtask, "reject", "safety", 1)}
            elif plan == "malformed":
                yield {"id": rubric, "text": f"I would accept it. {review(subtask, 'accept')}"}
            elif plan == "conflict":
                # Whoever stands first wins: a judge of positions.
                for order in ("ab", "ba"):
                    for sample in range(3):
                        pair = f"{name}:{subtask}/pair-1-2/{order}"
                        yield {"id": pair, "sample": sample, "text": comparison(9, 4)}
    for name, better in gold():
        for order in ("ab", "ba"):
            first_is_better = ((better == "a") == (order == "ab")) != (name == MISTAKEN)
            for sample in range(3):
                text = comparison(9, 4) if first_is_better else comparison(4, 9)
                yield {"id": f"gold:{name}/pair-1-2/{order}", "sample": sample, "text": text}
    for order in ("ab", "ba"):
        yield {"id": f"*/{order}", "text": comparison(7, 7)}
    for subtask in CUT:
        for number in ("", *(f":{n}" for n in range(2, 10))):
            yield {"id": f"*:{subtask}{number}/rubric", "text": review(subtask, "accept")}


def composer() -> Iterator[dict[str, Any]]:
    """The composer's lines: a second reference for those whose comparison is planned, nothing for the others."""
    for name, text in SECOND.items():
        proposal = {
            "evidence": "The first message asks for a short reply.",
            "emotion": "calm",
            "complexity": "basic",
            "interaction": "casual",
            "subtask": "dialogue_base",
            "turn": 1,
        }
        yield {"id": f"{name}/proposals", "text": _json({"evidence": "As scripted.", "proposals": [proposal]})}
        reference = _json({"evidence": "It takes up a detail of theirs.", "reference": text})
        yield {"id": f"{name}:dialogue_base/reference", "text": reference}
    yield {"id": "*", "text": _json({"evidence": "Nothing beside what stands in it.", "proposals": []})}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    for name, lines in (("reviewer", reviewer()), ("composer", composer())):
        path = EXAMPLES / f"{name}.jsonl"
        path.write_text("".join(_json(line) + "\n" for line in lines), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()

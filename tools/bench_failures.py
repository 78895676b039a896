"""How well the rules of failure signatures find what two blind readers marked.

    python tools/bench_failures.py [--data FOLDER] [--wrong]

Reads `memory.jsonl`, `planning.jsonl` and `hint.jsonl` of the folder (default: `tools/failure_replies`). A line holds
`id`, `question`, `language`, `context` (history, memories, schedule, current_activity, persona), `reply`, and the marks
`reader_a` and `reader_b`, each `yes` or `no`. Counted are the replies on which the readers agree: the share that the
rule has right with Wilson's interval, its sensitivity and specificity, and how often the readers agree (of all
replies). `--wrong` prints the ids of those that the rule has wrong. The rules were written without these replies.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "failure_replies" / "rules"))

from known import Known
from memory_collapse import memory_collapse
from missed_hint import missed_hint
from planning_fragmentation import planning_fragmentation

from h2htalk.benchmark.statistics.intervals import rate_interval
from h2htalk.data.dialogue import Turn
from h2htalk.data.scenario import ScheduleEntry

RULES = {"memory": memory_collapse, "planning": planning_fragmentation, "hint": missed_hint}
# In a scenario a plan is asked for by the subtask; here by the user's last message.
_ASKS_PLAN = re.compile(
    r"\b(?:plan|split|break (?:up|down)|schedule|map out|lay out|divide|organi[sz]e|step by step) "
    r"(?:out |up |down |me |us )?(?:my|our|your|the|it|this|that|a|an|\d|in)\b"
    r"|(?:帮|给|把|请)[^。？！]{0,12}(?:安排|计划|规划|拆|分成|列|排)|排一下|列一下",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d{1,2})[:：](\d\d)(?:\s*(?:-|–|—|~|至|到|to)\s*(\d{1,2})[:：](\d\d))?[\s,，:：]*(.*)")


def known_of(context: Mapping[str, Any]) -> Known:
    """What the context of a line tells the companion."""
    turns = tuple(Turn(**turn) for turn in context.get("history") or ())
    known = Known(
        history=turns,
        memories=tuple(context.get("memories") or ()),
        schedule=schedule_of(context.get("schedule") or ()),
        current_activity=context.get("current_activity") or "",
    )
    asked = known.last_message
    request = asked if _ASKS_PLAN.search(asked) else ""
    return Known(known.history, known.memories, known.schedule, known.current_activity, request)


def schedule_of(lines: Sequence[Any]) -> tuple[ScheduleEntry, ...]:
    """Entries in the order of time; after one that ends before the next begins, free time."""
    spans: list[tuple[str, str, str]] = []
    for line in lines:
        if isinstance(line, str):
            if (found := _SPAN.search(line)) is None:
                continue
            start, end, activity = _clock(found[1], found[2]), found[3] and _clock(found[3], found[4]), found[5]
        else:
            start, end, activity = line.get("start") or line["time"], line.get("end"), line["activity"]
            start, end = (text and _clock(*text.split(":")[:2]) for text in (start, end))
        spans.append((start, end or "", activity))
    spans.sort()
    starts = {start for start, _, _ in spans}
    free = [(end, "", "free 空闲") for _, end, _ in spans if end and end not in starts]
    return tuple(ScheduleEntry(start, activity) for start, _, activity in sorted((*spans, *free)))


def _clock(hour: str, minute: str) -> str:
    return f"{int(hour) % 24:02}:{int(minute):02}"


def share(hits: int, n: int) -> str:
    return f"{100 * hits / n:5.1f} % ({hits}/{n})" if n else "- (0)"


def describe(name: str, language: str, rows: Sequence[Mapping[str, Any]], wrong: bool) -> None:
    """Print the figures of one rule on these lines."""
    rule = RULES[name]
    agreed = [row for row in rows if row["reader_a"] == row["reader_b"]]
    said = [
        (row, row["reader_a"] == "yes", rule(row["reply"], known_of(row["context"]), row["language"])) for row in agreed
    ]
    right = sum(gold == found for _, gold, found in said)
    yes, no = ([found for _, gold, found in said if gold is value] for value in (True, False))
    interval = ""
    if said:
        low, high = (100 * end for end in rate_interval(right, len(said)))
        interval = f" [{low:.1f}, {high:.1f}]"
    print(
        f"{rule.__name__:24}{language:4} n {len(said):3}  right {share(right, len(said))}{interval}"
        f"  sensitivity {share(sum(yes), len(yes))}  specificity {share(len(no) - sum(no), len(no))}"
        f"  readers agree {share(len(agreed), len(rows))}"
    )
    if wrong:
        for row, gold, found in said:
            if gold != found:
                print(f"    {row['id']}: readers {'yes' if gold else 'no'}, rule {'yes' if found else 'no'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "failure_replies")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    for name in RULES:
        text = (arguments.data / f"{name}.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        languages = sorted({row["language"] for row in rows})
        for language in languages:
            describe(name, language, [row for row in rows if row["language"] == language], arguments.wrong)
        describe(name, "all", rows, False)


if __name__ == "__main__":
    main()

"""Measure what the crisis tags and removals do on labelled sets, on public data and on our own insults.

    python tools/eval_crisis.py [--data FOLDER] [--report]

Prints each figure beside what was asked for. Messages are frozen ones; of dialogues of each kind and of look-alikes it
reads the sets for development, and with --report those that nobody read who wrote a rule.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crisis.texts import CRISIS, by_writer
from eval_safety import Share, count, esconv_rows, one_message, smilechat, speed

from h2htalk.curation.safety.policy import Assessment
from h2htalk.curation.safety.stage import assess
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue, Turn

TESTS = Path(__file__).parents[1] / "tests/curation"
INSULTS = TESTS / "safety/dev_insults.json"
TAGS = ("crisis.", "minor", "grooming", "threat_to_others")
# Of our own texts each so many-th, for time.
STEP = 3


def tagged(found: Assessment) -> bool:
    return any(reason.startswith(TAGS) for reason in found.reasons)


def possible(found: Assessment) -> bool:
    return tagged(found) or any(one.category == "crisis.possible" for one in found.evidence)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def messages(language: Language) -> Iterator[Share]:
    """Frozen messages, each a dialogue of its own."""
    for name in ("crisis", "crisis2", "everyday"):
        rows = lines(TESTS / f"golden/{name}_{language}.jsonl")
        found = [assess(one_message(name, language, row["text"])) for row in rows]
        yield count(f"{name} {language}: tagged", map(tagged, found))
        yield count(f"{name} {language}: tagged, or noted as possible", map(possible, found))


def kinds(language: Language, report: bool) -> Iterator[Share]:
    """Dialogues of each kind that have its tag, and look-alikes that have any."""
    start = str(TESTS / ("golden/crisis" if report else "safety/sets/dev_crisis"))
    rows = lines(Path(f"{start}_dialogues_{language}.jsonl"))
    for kind in sorted({row["kind"] for row in rows}):
        code = "crisis.means" if kind == "means" else kind
        found = [assess(_dialogue(row, language)) for row in rows if row["kind"] == kind]
        yield count(f"dialogues {language}, {kind}", (code in a.reasons for a in found), least=0.9)
    rows = lines(Path(f"{start}_lookalikes_{language}.jsonl"))
    yield count(f"look-alikes {language}", (tagged(assess(_dialogue(row, language))) for row in rows), most=0.1)


def _dialogue(row: dict[str, Any], language: Language) -> Dialogue:
    return Dialogue("d", language, tuple(Turn(m["role"], m["content"]) for m in row["messages"]))


def cold(data: Path) -> Iterator[Share]:
    with (data / "safety/cold_dev.csv").open(encoding="utf-8-sig", newline="") as opened:
        rows = [(row["TEXT"], row["label"] == "1") for row in csv.DictReader(opened)]
    found = [(assess(one_message("cold", "zh", text)), label) for text, label in rows]
    yield count("assess.remove: accuracy on COLD dev", (a.remove == label for a, label in found), least=0.873)
    mild = (tagged(a) for a, label in found if not label)
    yield count("crisis tags on COLD dev's inoffensive messages", mild, most=0.045)


def esconv(rows: Sequence[Dialogue]) -> Iterator[Share]:
    found = [assess(row) for row in rows]
    yield count("ESConv dev rows tagged crisis", map(tagged, found), most=0.045)
    yield count("ESConv dev rows removed", (a.remove for a in found), most=0.01)
    turns = sorted({turn.content for row in rows for turn in row.messages if turn.role == "user"})
    alone = (tagged(assess(one_message("turn", "en", text))) for text in turns)
    yield count("ESConv dev seeker turns, each alone, tagged crisis", alone)


def insulted(language: Language) -> Share:
    """Our own texts with an insult before or after (the model has read the texts, not these insults)."""
    insults = json.loads(INSULTS.read_text(encoding="utf-8"))[language]
    texts = [text for own in by_writer(CRISIS, language, "crisis").values() for text in own][::STEP]
    joint = " " if language == "en" else "，"
    pairs = ([text, insults[at % len(insults)]][:: 1 if at % 2 else -1] for at, text in enumerate(texts))
    removed = (assess(one_message("insulted", language, joint.join(pair))).remove for pair in pairs)
    return count(f"crisis {language} with an insult: removed", removed, most=0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="read the sets that nobody read who wrote a rule")
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data's folder with --data or H2HTALK_DATA")
    data = Path(options.data)
    rows = list(esconv_rows(data / "raw/esconv_dev_en.tsv"))
    talks = list(smilechat(data / "raw/smilechat_zh.jsonl"))
    shares = [share for language in LANGUAGES for share in (*messages(language), *kinds(language, options.report))]
    shares += [*cold(data), *esconv(rows), *(insulted(language) for language in LANGUAGES)]
    shares.append(count("SmileChat dialogues removed", (assess(d).remove for d in talks), most=0.02))
    shares.append(count("SmileChat dialogues tagged crisis", (tagged(assess(d)) for d in talks)))
    for share in shares:
        print(share.line())
    for name, dialogues in (("en", rows[::10]), ("zh", talks[::4])):
        print(f"utterances a CPU second, {name}: {speed(dialogues):,.0f}  at least 1,000")
    return 0 if all(share.reached for share in shares) else 1


if __name__ == "__main__":
    sys.exit(main())

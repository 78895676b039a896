"""Draw what people read to judge curation on real chat: replaced passages, misses, spans and tags.

    H2HTALK_DATA=... python tools/sample_readings.py WHAT --half even|odd --out FILE [--limit 300]
    python tools/sample_readings.py surrogates --sets LABELLED_en.jsonl LABELLED_zh.jsonl --out FILE [--limit 100]

Writes JSON lines without the rule that made a mark.
`changed`: dialogues of `smilechat_zh_2` with a replaced passage, each passage with its context; `public`: how many
dialogues about public people (Topical-Chat, KdConv) are changed; `missed`: dialogues at random with all passages, for
what stayed; `spans`: one mark a line, by type and language; `tags`: one tag of the safety stage a line, `encoded` with
the encoder; `words`: messages with a plain word for death. English is ESConv dev and CounselChat. A half is chosen by
the SHA-256 of an item's id or question: `even` is for development, `odd` for a report. The draw depends on --seed
alone. `surrogates`: pairs of a labelled text and the same with surrogates, of each language by the set's name, as
`reading/surrogates.md` says; which of them is the original stands in FILE with `.key` behind it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from eval_safety import esconv_dialogues, smilechat
from train_companion import is_even

from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates
from h2htalk.curation.anonymize.surrogates.operators import replace_values
from h2htalk.curation.assessment import assess
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.detect.encoder import DangerEncoder, load_encoder
from h2htalk.detect.personal.engine.analyzer import find_in_dialogue
from h2htalk.detect.personal.spans import Span
from h2htalk.detect.personal.values.dialogue_values import collect_values

TYPES = ("PERSON", "ORGANIZATION", "PHONE_NUMBER")
KINDS = ("changed", "missed", "public", "spans", "tags", "encoded", "words", "surrogates")
CONTEXT = 60  # characters before and after a mark
TAGS = ("crisis.", "minor", "grooming", "threat_to_others", "political.")
DEATH = re.compile(
    r"死|自杀|不想活|\b(?:die[sd]?|dying|dead|deaths?|suicid\w*|kill(?:ing|ed)? (?:my|him|her|your|them)sel\w+"
    r"|end(?:ing)? (?:my|her|his) (?:own )?life|end it all)\b",
    re.IGNORECASE,
)
Item = dict[str, Any]


def in_half(key: str, half: str) -> bool:
    return is_even(key) == (half == "even")


def chinese(data: Path, half: str) -> list[Dialogue]:
    return [d for d in smilechat(data / "raw/smilechat_zh_2.jsonl") if in_half(d.id, half)]


def english(data: Path, half: str) -> list[Dialogue]:
    """The conversations of ESConv dev, and each question of CounselChat with its first answer."""
    found = [
        d
        for d in esconv_dialogues(data / "raw/esconv_dev_en.tsv")
        if in_half(d.messages[0].content, half)
    ]
    questions: dict[str, Dialogue] = {}
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            question = row["questionText"]
            turns = (
                Turn("user", f"{row['questionTitle']}\n{question}"),
                Turn("companion", row["answerText"] or "-"),
            )
            if question and in_half(question, half):
                questions.setdefault(
                    question, Dialogue(f"counselchat-{row['questionID']}", "en", turns)
                )
    return [*found, *questions.values()]


def marks(dialogue: Dialogue) -> Iterator[Item]:
    """The passages of a dialogue that anonymisation replaces."""
    texts = [turn.content for turn in dialogue.messages]
    for at, spans in enumerate(find_in_dialogue(texts, dialogue.language).spans):
        for span in spans:
            text = texts[at]
            before = text[max(0, span.start - CONTEXT) : span.start]
            after = text[span.end : span.end + CONTEXT]
            yield {
                "type": span.type,
                "turn": at,
                "text": f"{before}[[{text[span.start : span.end]}]]{after}",
            }


def tags(dialogue: Dialogue, encoder: DangerEncoder | None = None) -> Iterator[Item]:
    """The tags of a dialogue, each with the messages of its evidence and the seeker's first message."""
    assessment = assess(dialogue, encoder=encoder)
    for code in sorted(code for code in assessment.reasons if code.startswith(TAGS)):
        turns = sorted({one.turn for one in assessment.evidence if one.category == code})
        said = [dialogue.messages[turn].content[:600] for turn in turns[:3]]
        yield {"tag": code, "messages": said, "first": dialogue.messages[0].content[:300]}


def words(dialogue: Dialogue) -> Iterator[Item]:
    """The seeker's messages with a plain word for death."""
    for at, turn in enumerate(dialogue.messages):
        if turn.role == "user" and DEATH.search(turn.content):
            before = " / ".join(one.content[:200] for one in dialogue.messages[max(0, at - 2) : at])
            yield {"before": before, "text": turn.content[:1500]}


def pairs(path: Path, limit: int, seed: int) -> Iterator[Item]:
    """Labelled texts, each beside itself with surrogates of its spans; `original` says which one it is."""
    language: Language = "zh" if "zh" in f"{path.parent.name} {path.stem}" else "en"
    labelled = [
        row for line in path.read_text("utf-8").splitlines() if (row := json.loads(line))["spans"]
    ]
    for row in drawn(labelled, limit, seed):
        text = row["text"]
        key = f"{seed} {row['id']}".encode()
        spans = [Span(one["start"], one["end"], one["type"], 1.0) for one in row["spans"]]
        data = replace(collect_values([text], [spans], language), spans=(tuple(spans),))
        made = replace_values([text], [spans], Surrogates(key, [text], data), {}, key)[0][0]
        original = random.Random(key).choice("AB")
        yield {"language": language, "A": text if original == "A" else made, "B": made if original == "A" else text,
               "original": original, "id": row["id"], "types": sorted({span.type for span in spans})}  # fmt: skip


def drawn(items: Sequence[Item], limit: int, seed: int) -> list[Item]:
    return list(items) if len(items) <= limit else random.Random(seed).sample(items, limit)


def sample(what: str, data: Path, half: str, limit: int, seed: int) -> Iterator[Item]:
    if what == "public":
        for language, name in (("en", "topical_chat_valid_en"), ("zh", "kdconv_dev_zh")):
            rows = map(
                json.loads, (data / f"raw/{name}.jsonl").read_text(encoding="utf-8").splitlines()
            )
            said = [
                [turn["content"] for turn in row["messages"]]
                for row in rows
                if in_half(row["id"], half)
            ]
            spans = [
                [span.type for one in find_in_dialogue(texts, language).spans for span in one]
                for texts in said
            ]
            counts = Counter(chain.from_iterable(spans))
            yield {"file": name, "dialogues": len(said), "changed": sum(map(bool, spans)), **counts}
        return
    talks = {"zh": chinese(data, half), "en": english(data, half)}
    if what in {"changed", "missed"}:
        found = [{"id": d.id, "marks": list(marks(d))} for d in talks["zh"]]
        changed = [item for item in found if item["marks"]]
        print(f"dialogues: {len(found)}, changed: {len(changed)}")
        if what == "changed":
            yield from drawn(changed, limit, seed)
            return
        said = {d.id: [f"{turn.role}: {turn.content}" for turn in d.messages] for d in talks["zh"]}
        yield from ({**item, "messages": said[item["id"]]} for item in drawn(found, limit, seed))
        return
    readers = {
        "spans": marks,
        "tags": tags,
        "encoded": lambda one: tags(one, load_encoder()),
        "words": words,
    }
    for language, dialogues in talks.items():
        groups: dict[str, list[Item]] = defaultdict(list)
        tagged = 0
        for dialogue in dialogues:
            items = list(readers[what](dialogue))
            tagged += bool(items)
            for item in items:
                key = item.get("type", what)
                if what != "spans" or key in TYPES:
                    groups[key].append({"id": dialogue.id, "language": language, **item})
        counts = {key: len(group) for key, group in sorted(groups.items())}
        print(f"{language}: {len(dialogues)} dialogues, {tagged} with any, {counts}")
        for group in groups.values():
            yield from drawn(group, limit, seed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=KINDS)
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    parser.add_argument("--half", choices=["even", "odd"])
    parser.add_argument("--sets", type=Path, nargs="+", default=[], help="labelled texts")
    parser.add_argument(
        "--limit",
        type=int,
        default=300,
        help="items at most; spans and tags: of a type or language",
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.what == "surrogates":
        found = [item for path in options.sets for item in pairs(path, options.limit, options.seed)]
        key = [{name: item.pop(name) for name in ("original", "id", "types")} for item in found]
        write(options.out.with_name(options.out.name + ".key"), key)
        write(options.out, found)
        return
    if options.data is None or options.half is None:
        parser.error("name the data's folder with --data or H2HTALK_DATA, and --half")
    write(
        options.out,
        sample(options.what, Path(options.data), options.half, options.limit, options.seed),
    )


def write(path: Path, items: Iterable[Item]) -> None:
    """Numbered items as JSON lines."""
    lines = [
        json.dumps({"n": number, **item}, ensure_ascii=False) + "\n"
        for number, item in enumerate(items)
    ]
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

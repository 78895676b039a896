"""Personal data in labelled sets and public conversations: results must not fall below the asked or measured values.

The sets in `golden` were written before any rule, those in `sets` are the ones that the rules were mended on.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from h2htalk.data.languages import LANGUAGES
from h2htalk.detect.personal.chinese import recognizer as chinese
from h2htalk.detect.personal.engine.analyzer import find_in_dialogue, find_spans
from h2htalk.detect.personal.english import recognizer as english
from h2htalk.detect.personal.spans import TYPES, Span

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "curation/golden"
sys.path.insert(0, str(Path(__file__).parents[3] / "tools/private"))
import esconv_dialogues  # noqa: E402

FOLDERS = {"pii": GOLDEN, "negatives": GOLDEN}
STRUCTURED = {  # a web address without an account, which the golden sets label, stays
    *("EMAIL_ADDRESS", "PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER"),
    *("QQ", "WECHAT", "LICENSE_PLATE", "IP_ADDRESS"),
}
NUMBERS = {*TYPES[:-3]}


@cache
def found(name: str, language: str) -> list[tuple[dict[str, Any], list[Span]]]:
    """The rows of a set, each with what is found in it."""
    path = FOLDERS.get(name, HERE / "sets") / f"{name}_{language}.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [(row, find_spans(row["text"], language)) for row in rows]


# Recall and precision by overlap with a span of the same type; structured data of development by exact span.
@pytest.mark.parametrize(
    ("name", "language", "types", "form", "recall", "precision"),
    [
        (
            "pii",
            "en",
            STRUCTURED,
            "plain",
            0.985,
            0.98,
        ),  # English customer numbers, .3 %, are not looked for
        ("pii", "zh", STRUCTURED, "plain", 0.99, 0.98),
        *(("pii", language, STRUCTURED, "hostile", 0.90, 0.95) for language in LANGUAGES),
        ("pii", "en", {"PERSON"}, None, 0.82, 0.60),
        ("pii", "zh", {"PERSON"}, None, 0.80, 0.80),
        ("pii", "zh", {"ADDRESS"}, None, 0.85, 0.80),
        ("pii", "en", {"ADDRESS"}, None, 0.80, 0.80),
        ("pii", "en", {"ORGANIZATION"}, None, 0.72, 0.75),
        ("dev_names", "en", {"PERSON"}, None, 0.95, 0.92),
        ("dev_names", "en", {"ADDRESS"}, None, 0.95, 0.95),
        ("dev_names", "en", {"ORGANIZATION"}, None, 0.88, 0.93),
        # Lowered where rules were taken away that ruin real chat (docs/measurements.md).
        ("dev_names", "zh", {"PERSON"}, None, 0.90, 0.96),
        ("dev_names", "zh", {"ADDRESS"}, None, 0.94, 0.97),
        # Seven Chinese sentences hold toll-free numbers, which are nobody's own.
        *(
            ("dev_structured", lang, NUMBERS, form, 0.97, 0.99)
            for lang in LANGUAGES
            for form in ("plain", "hostile")
        ),
    ],
)
def test_personal_data(
    name: str, language: str, types: set[str], form: str | None, recall: float, precision: float
) -> None:
    gold = 0
    claimed = 0
    recalled = 0
    right = 0
    for row, spans in found(name, language):
        if form not in (None, row.get("form")):
            continue
        labels = [label for label in row["spans"] if label["type"] in types]
        claims = [span for span in spans if span.type in types]
        gold += len(labels)
        claimed += len(claims)
        for label in labels:
            alike = [span for span in claims if _overlaps(label, span)]
            if name == "dev_structured":
                alike = [
                    span
                    for span in alike
                    if (span.start, span.end) == (label["start"], label["end"])
                ]
            recalled += bool(alike)
        for span in claims:
            right += any(_overlaps(label, span) for label in labels)
    assert gold >= 100
    assert recalled / gold >= recall
    assert right / claimed >= precision


def _overlaps(label: dict[str, Any], span: Span) -> bool:
    """Whether a span has the type of a label, and shares characters with it."""
    return span.type == label["type"] and span.start < label["end"] and label["start"] < span.end


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_without_a_leaked_character(language: str) -> None:
    """Those whose only leak is an organisation are apart: one without strong evidence stays on purpose."""
    leaking = organizations = 0
    for row, spans in found("pii", language):
        covered: set[int] = set()
        for span in spans:
            covered.update(range(span.start, span.end))
        leaks: set[str] = set()
        for label in row["spans"]:
            for position in range(label["start"], label["end"]):
                if position not in covered and not row["text"][position].isspace():
                    leaks.add(label["type"])
        leaking += bool(leaks - {"ORGANIZATION"})
        organizations += leaks == {"ORGANIZATION"}
    assert leaking / len(found("pii", language)) <= 0.10
    assert organizations / len(found("pii", language)) <= (
        0.08 if language == "zh" else 0.06
    )  # zh: not looked for


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardly_a_harmless_sentence_is_marked(language: str) -> None:
    for name, most in (("negatives", 0.08), ("dev_names", 0.02), ("negatives_structured", 0.02)):
        # The last set was written before accounts of networks counted as personal data.
        types = NUMBERS - {"HANDLE"} if name == "negatives_structured" else {*TYPES}
        types_found = [
            {span.type for span in spans}
            for row, spans in found(name, language)
            if not row.get("spans")
        ]
        marked = [of_sentence & types for of_sentence in types_found if of_sentence & types]
        assert len(types_found) > 90
        assert len(marked) <= most * len(types_found), marked


def find_people(texts: Sequence[str], language: str) -> list[list[Span]]:
    spans = {"en": english, "zh": chinese}[language].find_names(texts, [()] * len(texts))
    people: list[list[Span]] = []
    for of_text in spans:
        people.append([span for span in of_text if span.type == "PERSON"])
    return people


@pytest.mark.parametrize("language", LANGUAGES)
def test_users_of_the_memory_bank_are_found_by_their_own_names(
    shared_data: Path, language: str
) -> None:
    users = json.loads(
        (shared_data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8")
    )
    mentions: list[bool] = []
    for name, user in users.items():
        texts: list[str] = []
        for day in user["history"].values():
            for turn in day:
                texts += [turn["query"], turn["response"]]
        name_of_user = re.compile(
            re.escape(name) if language == "zh" else rf"\b{re.escape(name.strip())}\b"
        )
        for text, people in zip(texts, find_people(texts, language), strict=True):
            for match in name_of_user.finditer(text):
                mentions.append(
                    any(match.start() < span.end and span.start < match.end() for span in people)
                )
    assert len(mentions) > 30
    assert sum(mentions) >= 0.95 * len(mentions)


@pytest.mark.slow
def test_private_first_names_of_support_chat_are_found(shared_data: Path) -> None:
    """Where people talk of themselves; the places are those of `golden/esconv_names.jsonl`."""
    dialogues = esconv_dialogues.read_dialogues(shared_data)
    places = defaultdict(list)
    for line in (GOLDEN / "esconv_names.jsonl").read_text("utf-8").splitlines():
        place = json.loads(line)
        places[place["dialogue"]].append(place)
    seekers: list[bool] = []
    for number, named in places.items():
        messages = sorted(dialogues[number - 1])
        texts = [dialogues[number - 1][message].text for message in messages]
        spans = dict(zip(messages, find_in_dialogue(texts, "en").spans, strict=True))
        for place in named:
            name = dialogues[number - 1][place["message"]].text[place["start"] : place["end"]]
            assert hashlib.sha256(name.lower().encode()).hexdigest()[:8] == place["name"]
            if place["of"] == "seeker":
                of_message = spans[place["message"]]
                seekers.append(
                    any(s.start <= place["start"] and place["end"] <= s.end for s in of_message)
                )
    assert len(seekers) == 34
    assert sum(seekers) >= 0.88 * len(seekers)


@pytest.mark.slow
@pytest.mark.parametrize(("talk", "most"), [("personal", 0.15), ("public", 0.06)])
def test_few_dialogues_about_public_matters_are_changed(
    shared_data: Path, talk: Literal["personal", "public"], most: float
) -> None:
    """Every fifth of Topical-Chat."""
    lines = (
        (shared_data / "raw/topical_chat_valid_en.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()[::5]
    )
    changed: list[bool] = []
    for line in lines:
        texts = [turn["content"] for turn in json.loads(line)["messages"]]
        changed.append(any(find_in_dialogue(texts, "en", talk=talk).spans))
    assert len(changed) > 200
    assert 0 < sum(changed) <= most * len(changed)


@pytest.mark.slow
def test_real_chat_holds_few_names(shared_data: Path) -> None:
    """Beside the persona's own name (艾薇), Chinese chats hold a private name in 2 of 1,000 turns at most; of those
    found in counsellors' answers, read by eye, about one in six is none."""
    lines = (shared_data / "raw/smilechat_zh.jsonl").read_text(encoding="utf-8").splitlines()
    smile = [turn["content"] for line in lines[:300] for turn in json.loads(line)["messages"]]
    dialogues = json.loads((shared_data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))
    turns = [turn for dialogue in dialogues[:200] for turn in dialogue["conversation"]]
    aiwei = [turn[side] for turn in turns for side in ("input", "output") if turn.get(side)]
    with (shared_data / "raw/counselchat_en.csv").open(encoding="utf-8") as file:
        answers = sorted(
            {row[key] for row in csv.DictReader(file) for key in ("questionText", "answerText")}
        )
    for language, texts, most in (("zh", smile, 0.01), ("zh", aiwei, 0.01), ("en", answers, 0.07)):
        spans = zip(texts, find_people(texts, language), strict=True)
        names = [text[s.start : s.end] for text, people in spans for s in people]
        assert len([name for name in names if "艾薇" not in name]) < most * len(texts)

"""A subtask, a language, a curation stage, an engine and a metric are added as a contributor would, and used.

Each test works on a copy of the package, runs the real command line on five items, and counts the places that it
touched: a record in a table, or a new module. Data files (prompts, word lists) do not count.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import write_jsonl
from support.command_line import h2htalk

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DATA_FILES = {".toml", ".json", ".jsonl", ".txt", ".csv", ".j2", ".weights"}
HISTORY = {"history": [{"role": "user", "content": "I found my receipt."}]}
REPLY = "I kept the receipt of day 3."
DIALOGUES = {
    "en": (
        ("My sourdough rose overnight at last.", "Which flour did you use in the end?"),
        (
            "The night train was late, so I drew the platform.",
            "May I see the drawing when it is dry?",
        ),
        ("I repaired a radio; call 617-534-3866.", "What was the first song that it played?"),
    ),
    "de": (
        ("Mein Sauerteig ist endlich aufgegangen.", "Welches Mehl hast du am Ende genommen?"),
        (
            "Unser Chor hat heute in der alten Brauerei gesungen.",
            "Hat das Wasserrad den Takt gehalten?",
        ),
        (
            "Ich habe ein Radio repariert; ruf an: 617-534-3866.",
            "Welches Lied hat es als erstes gespielt?",
        ),
    ),
}


class Checkout:
    """A copy of the package, what was changed in it, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "h2htalk"
        self.places: list[str] = []
        shutil.copytree(
            ROOT / "h2htalk", self.package, ignore=shutil.ignore_patterns("__pycache__")
        )

    def add(self, path: str, text: str) -> None:
        """Add a file; a module counts as a place."""
        (self.package / path).write_text(text, encoding="utf-8")
        if not path.endswith(".j2"):
            self.places += [path]

    def edit(self, path: str, before: str, new: str) -> None:
        """Insert text before another, which occurs once."""
        target = self.package / path
        text = target.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{path}: {before!r} occurs {text.count(before)} times"
        target.write_text(text.replace(before, new + before), encoding="utf-8")
        self.places.append(path)

    def run(self, *words: str) -> str:
        """Run a command to its end; returns what it printed."""
        env = {**os.environ, "PYTHONPATH": str(self.folder), "COLUMNS": "120"}
        done = h2htalk(*words, cwd=self.folder, env=env)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def evaluate(self, split: str, model: str = "scripted:replies.jsonl") -> str:
        self.write("replies.jsonl", [{"id": "*", "text": REPLY}])
        return self.run("evaluate", model, "--split", split, "--out", "run", "--embedder", "none")

    def split(self, language: str, subtask: str, inputs: dict[str, Any]) -> str:
        tags = {"emotion": "joy", "complexity": "basic", "interaction": "memory", "risk": "none"}
        common = {
            "subtask": subtask,
            "language": language,
            "persona": "nora",
            "inputs": inputs,
            "tags": tags,
        }
        common |= {"licence": "CC0-1.0", "provenance": {"source": "test"}}
        rows = [
            {"id": f"item-{n}", "reference": f"I kept the receipt of day {n}.", **common}
            for n in range(1, 6)
        ]
        return self.write("five.jsonl", rows)

    def curation(self, language: str) -> str:
        """Write three dialogues and the specification of their curation; returns its file's name."""
        rows = [
            {
                "id": f"d{n}",
                "language": language,
                "licence": "CC0-1.0",
                "provenance": {"source": "raw"},
            }
            | {
                "messages": [
                    {"role": "user", "content": one},
                    {"role": "companion", "content": two},
                ]
            }
            for n, (one, two) in enumerate(DIALOGUES[language], 1)
        ]
        self.write("dialogues.jsonl", rows)
        (self.folder / "curate.toml").write_text(
            'workspace = "workspace"\nprocesses = 1\n[gather]\nlicence = "CC0-1.0"\n[[gather.sources]]\nname = "raw"\n'
            f'path = "dialogues.jsonl"\nformat = "dialogues"\nlanguage = "{language}"\nlicence = "CC0-1.0"\n',
            encoding="utf-8",
        )
        return "curate.toml"

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> str:
        write_jsonl(self.folder / name, rows)
        return name

    def json(self, path: str) -> Any:
        return json.loads((self.folder / path).read_text(encoding="utf-8"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_subtask_is_a_record_and_its_prompts(checkout: Checkout) -> None:
    record = """Subtask("recollection_comparison", "Comparison", 0, (_MEMORIES, ("question", "text")), 64, _LINE),
    """
    checkout.edit("data/subtasks.py", 'Subtask("recollection_synthesis"', record)
    prompt = '{% extends "en/_companion.j2" %}{% block user %}{{ memories[0] }}: {{ question }}{% endblock %}'
    checkout.add("benchmark/prompts/en/recollection_comparison.j2", prompt)
    inputs = {"memories": ["A receipt."], "question": "Which day?"}
    split = checkout.split("en", "recollection_comparison", inputs)

    assert re.search(r"5 of 5 items scored.*Comparison", checkout.evaluate(split), flags=re.S)
    rows = checkout.json("run/summary.json")["rows"]
    assert rows["compliance"]["recollection_comparison"]["value"] == 100
    assert "A receipt.: Which day?" in checkout.run("prompts", "show", "--all", "--split", split)
    checkout.run("leaderboard", "--paper", "run")
    assert len(checkout.places) <= 2, checkout.places


def test_an_engine_is_a_record_and_a_module(checkout: Checkout) -> None:
    record = 'Engine("echo", "h2htalk.chat.echo:EchoChat", local=True),\n        '
    checkout.edit("chat/engines.py", 'Engine(\n            "embedded"', record)
    checkout.add(
        "chat/echo.py",
        """from h2htalk.chat.protocol import Reply

class EchoChat:
    def __init__(self, name, options):
        self.subject = {"engine": "echo", "model": name}

    def complete(self, requests, on_done=None):
        replies = [Reply(request.messages[-1].content) for request in requests]
        for index, reply in enumerate(replies):
            on_done(index, reply)
        return replies

    def close(self): ...
""",
    )
    assert "echo:parrot" in checkout.evaluate(
        checkout.split("en", "dialogue_base", HISTORY), "echo:parrot"
    )
    assert checkout.json("run/run.json")["signature"]["subject"]["engine"] == "echo"
    assert (checkout.folder / "run" / "calls.jsonl").read_text().count("I found my receipt.") == 5
    assert "echo" in checkout.run("evaluate", "--help")
    assert len(checkout.places) <= 2, checkout.places


def test_a_metric_is_a_record_and_a_module(checkout: Checkout) -> None:
    path = "h2htalk.benchmark.metrics.brevity:score_brevity"
    record = f'"brevity": Metric(name="brevity", path="{path}", columns=("brevity",)),\n    '
    checkout.edit("benchmark/metrics/composite.py", '"semantic": Metric(', record)
    module = "def score_brevity(pairs, metrics):\n    return [(1 / (1 + len(pair.response)),) for pair in pairs]\n"
    checkout.add("benchmark/metrics/brevity.py", module)
    checkout.evaluate(checkout.split("en", "dialogue_base", HISTORY))
    expected = pytest.approx(100 / (1 + len(REPLY)))
    summary = checkout.json("run/summary.json")
    assert summary["metrics"]["dialogue_base"]["brevity"]["value"] == expected
    assert "brevity-1" in summary["signature"]["protocol"]["metrics"]
    assert "brevity" in (checkout.folder / "run" / "report.html").read_text(encoding="utf-8")
    assert len(checkout.places) <= 2, checkout.places


def test_a_stage_is_a_record_and_a_module(checkout: Checkout) -> None:
    settings = (
        "@dataclass(frozen=True, slots=True)\nclass ShortenSettings:\n    longest: int = 1000\n\n\n"
    )
    checkout.edit(
        "curation/stages.py", "@dataclass(frozen=True, slots=True)\nclass Stage:", settings
    )
    record = 'Stage("shorten", "shorten", ShortenSettings),\n        '
    checkout.edit("curation/stages.py", 'Stage(\n            "dedup",', record)
    checkout.add(
        "curation/shorten.py",
        """from h2htalk.curation.stage_folder import Kept, Rejected, each_dialogue
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.stages import ShortenSettings


def make_stage(spec, workspace, key):
    longest = spec.section(ShortenSettings).longest
    return StageRun("shorten", 1, {"longest": longest}, RuleFactory(open_rule, (longest,)))


def open_rule(longest):
    def rule(dialogue):
        if max(len(turn.content) for turn in dialogue.messages) > longest:
            return [Rejected(dialogue.id, "long", {}, dialogue.to_dict())]
        return [Kept(dialogue.to_dict(), ("short",))]

    return each_dialogue(rule)
""",
    )
    spec = checkout.curation("en")
    with (checkout.folder / spec).open("a", encoding="utf-8") as text:
        text.write("[shorten]\nlongest = 46\n")

    checkout.run("curate", "run", spec)

    kept = [
        checkout.json(f"workspace/{name}/summary.json")["kept"]
        for name in ("safety", "shorten", "dedup")
    ]
    assert kept == [3, 2, 2]
    funnel = checkout.run("curate", "funnel", "workspace")
    assert all(word in funnel for word in ("rejected: long 1", "tagged: short 2"))
    assert len(set(checkout.places)) <= 2, checkout.places


def test_a_language_is_a_record_and_data_files(checkout: Checkout) -> None:
    record = """"de": LanguageRecord(
        name="German", tokenizer="13a", unit="words", script="Latin", joint=" ", comma=", ", repeated_run=8,
        lengths=_lengths(20, 40, 80, 35, 70, 14, 6), null_memory="Nichts zu merken.",
        memory_labels=("Inhalt", "Kategorie", "Wichtigkeit"),
        memory_categories=_names(", ".join(f"Kategorie {n}" for n in range(24))),
        constant_reply="Ich bin da.", gap_notes=("[am Tag darauf]", "[{days} Tage später]"),
        word_length=6.0, reading_speed=900, plural_s=False, parser_components="",
        pair_rules="h2htalk.analysis.verb_nouns.english:english_pairs",
        name_recognizer="h2htalk.detect.personal.english.recognizer", number_rules="en",
    ),
    """
    checkout.edit("data/languages.py", '"zh": LanguageRecord(', record)
    copy_data_files(checkout, "en", "de")
    assert "5 of 5 items scored" in checkout.evaluate(
        checkout.split("de", "dialogue_base", HISTORY)
    )
    assert checkout.json("run/summary.json")["languages"] == ["de"]
    checkout.run("curate", "run", checkout.curation("de"))
    assert checkout.json("workspace/dedup/summary.json")["kept"] == 3
    assert (
        "617-534-3866"
        not in (checkout.folder / "workspace/anonymize/kept/part-00000.jsonl").read_text()
    )
    assert len(checkout.places) <= 1, checkout.places


def copy_data_files(checkout: Checkout, old: str, new: str) -> None:
    """Stand in for the data files that a contributor writes: those named by a language, and those that hold all."""
    for path in sorted(checkout.package.rglob("*")):
        name = path.relative_to(checkout.package)
        parts = [part.replace(f"_{old}.", f"_{new}.") for part in name.parts]
        parts = [new + part[len(old) :] if part.split(".")[0] == old else part for part in parts]
        if path.suffix in DATA_FILES and parts != list(name.parts):
            target = checkout.package.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            extends = f'"{old}/'.encode(), f'"{new}/'.encode()
            target.write_bytes(path.read_bytes().replace(*extends))
    shared = [
        checkout.package / "text/help_lines.toml",
        checkout.package / "text/emergency_numbers.jsonl",
    ]
    for path in [*checkout.package.glob("data/bundled/personas/*.toml"), *shared]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(
            rf'"{old}": ("[^"]*")', rf'\g<0>, "{new}": \1', text
        )  # a key of a JSON object
        text = re.sub(
            rf'^{old} = (".*")$', rf"\g<0>\n{new} = \1", text, flags=re.M
        )  # a key on its own line
        text = re.sub(
            rf'[{{,] {old} = ("[^"]*")', rf"\g<0>, {new} = \1", text
        )  # a key of an inline table
        tables = re.findall(rf"^\[((?:wording\.)?{old}(?:\.\w+)?)\]$", text, flags=re.M)
        for heading in tables:
            if table := re.search(
                rf"^\[{re.escape(heading)}\]\n.*?(?=^\[|\Z)", text, flags=re.M | re.S
            ):
                copied = table[0].replace(f"[{heading}]", f"[{heading.replace(old, new)}]")
                text = text.replace(table[0], f"{table[0]}\n{copied}\n")
        path.write_text(text, encoding="utf-8")

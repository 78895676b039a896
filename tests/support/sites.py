"""Sites of runs that were never asked: answers of one's own, scored or with scores of one's own."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import (
    ItemScore,
    Metrics,
    SampleScore,
    item_score,
    score_answers,
)
from h2htalk.benchmark.metrics.lexical import LexicalScores
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.run import Run, RunInputs
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario, Turn
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.site.build import Context, read_words
from h2htalk.site.items import write_items
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.sources import RunSource, Sources
from support.summaries import made_summary

CHUNK = re.compile(rb'h2htalk_chunk\("([a-z]+-[0-9a-f]{8})", "([A-Za-z0-9+/=]+)"\);\n')
PROMPTS = PromptSet.load()


def made_run(
    folder: Path,
    split: Split,
    texts: Mapping[str, str | Failure],
    model: str = "server:m",
    scores: Mapping[str, ItemScore] | None = None,
    manifest: Mapping[str, Any] = {},
    **fields: Any,
) -> Run:
    """A run of a split with these answers; `fields` of all responses, `manifest`: more in its run.json."""
    answers: Answers = {}
    for name, text in texts.items():
        failed = isinstance(text, Failure)
        answers[name, 0] = (
            FailedResponse(name, 0, text) if failed else Response(name, 0, text, "stop", **fields)
        )
    protocol = {"items": split.fingerprint, "prompts": PROMPTS.fingerprint}
    summary = made_summary(model=model, protocol=protocol)
    folder.mkdir(parents=True)
    run = {"spec": {"model": model}, "signature": summary.signature.to_dict(), **manifest}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    spec = EvaluateSpec(model="baseline:constant", split=split.name, out=folder)
    data = RunInputs(RunFolder(folder), spec, split, PROMPTS.prompt_of(split, Sap.parse("full")))
    return Run(
        data,
        summary,
        answers,
        scores or score_answers(split, answers, 1, Metrics(), data.prompt_of),
    )


def made_context(runs: Iterable[Run], language: Any = "en") -> Context:
    sources = [RunSource(f"{n:08x}", run.summary.model, run) for n, run in enumerate(runs, 10)]
    return Context(Sources(tuple(sources)), read_words(language), language, "H2HTalk")


def items_of(context: Context, leave_out: Collection[str] = ()) -> dict[str, bytes]:
    """What `write_items` yields where nothing leaks."""
    check = LeakCheck(context.sources)
    files = dict(write_items(context, check, leave_out))
    check.require_none()
    return files


def write_site(context: Context, out: Path) -> Path:
    """Write what `write_items` yields; return the page."""
    for name, content in items_of(context).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return out / "items.html"


def unpacked(content: bytes) -> Any:
    """The data of a chunk."""
    found = CHUNK.fullmatch(content)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[2])))


def chunks_of(context: Context) -> dict[str, Any]:
    """The data of every chunk, by the start of its name; of several texts, by the run's key."""
    found = {}
    for name, content in items_of(context).items():
        if name.startswith("data/"):
            kind, _, key = name[len("data/") : -len(".js")].partition("-")
            found[key if kind == "texts" else kind] = unpacked(content)
    return found


def mini(*numbers: int, **changes: Any) -> Split:
    """Some items of `mini`, by number."""
    split = load_split("mini@1")
    return replace(
        split, scenarios=tuple(split.scenarios[n] for n in numbers or range(8)), **changes
    )


# --- A large site -----------------------------------------------------------------------------------------------------


def paper_sized(total: int = 4650) -> Split:
    """As many items as the paper has, each of its own words, with the shares of its subtasks."""
    split = load_split("mini@1")
    draw = random.Random(1)
    by_subtask: dict[str, list[Scenario]] = {}
    for one in split.scenarios:
        by_subtask.setdefault(one.subtask, []).append(one)
    names = [name for name, subtask in SUBTASKS.items() for _ in range(subtask.count)][:total]
    made = []
    for n, name in enumerate(names):
        one = draw.choice(by_subtask[name])
        inputs = {
            field: tuple(Turn(t.role, f"{t.content} ({n})") for t in value)  # type: ignore[union-attr]
            if field == "history"
            else value
            for field, value in one.inputs.items()
        }
        made.append(replace(one, id=f"{one.id}-{n:04}", inputs=inputs))
    return replace(split, scenarios=tuple(made))


def large_runs(
    folder: Path, count: int = 50, split: Split | None = None, words: int = 40
) -> list[Run]:
    """Runs whose answers are about so many words of the split's own references, with drawn scores."""
    split = split or paper_sized()
    pools = {
        language: [w for s in split.scenarios[:800] if s.language == language for w in _words(s)]
        for language in ("en", "zh")
    }
    runs = []
    for n in range(count):
        draw = random.Random(n)
        texts = {}
        scores = {}
        for s in split.scenarios:
            pool = pools[s.language]
            length = draw.randint(words // 2, words + words // 2)
            texts[s.id] = ("" if s.language == "zh" else " ").join(draw.choices(pool, k=length))
            values = [round(draw.random(), 5) for _ in range(7)]
            broken = ("too_long",) if draw.random() < 0.1 else ()
            lexical = LexicalScores(*values[:6])._asdict()
            scores[s.id] = item_score(
                s.id, [SampleScore(s.id, 0, {**lexical, "ss": values[6]}, broken)]
            )
        runs.append(made_run(folder / f"run-{n}", split, texts, f"server:model-{n:02}", scores))
    return runs


def _words(scenario: Scenario) -> Sequence[str]:
    text = scenario.reference
    return text.split() if scenario.language == "en" else re.findall(r".{1,2}", text)

"""Probe a judge: ask it about replies whose order is known, and compute how well it measures.

Its folder holds `calls.jsonl` (the call store), the key of the fences, and `probe.json` (the figures).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from h2htalk.benchmark.judge.judge_run import JUDGE_TOKENS
from h2htalk.benchmark.judge.judgements import Judge, fence_secret
from h2htalk.benchmark.judge.probe.probe_figures import (
    SETS,
    Probe,
    ProbeRecord,
    probe_figures,
    probe_text,
    read_probe_set,
)
from h2htalk.benchmark.judge.rubric import JudgePrompts, JudgePromptWriter, qualities_of, read_judgement, reply_schema
from h2htalk.benchmark.judge.settings import JudgeSpec
from h2htalk.chat.engines import parse_model
from h2htalk.chat.model_identity import model_name
from h2htalk.chat.protocol import Message, Outcome, Request, Sampling, request_seed
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model, describe_calls
from h2htalk.data.arguments import require_kind
from h2htalk.data.files import read_json_object, write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.responses import Failure, strip_thinking
from h2htalk.errors import ConfigError, quoted
from h2htalk.text.fences import Fence

COMPARED = 15  # pairs of each of these kinds and each language that are also shown side by side
COMPARED_KINDS = ("padded", "shortened")


def judge_probe(spec: JudgeSpec, language: str | None = None, repeats: int = 2) -> Probe:
    """Probe a judge on the bundled records, or continue.

    Args:
        spec: the judge and how it is asked; its `run` is the folder to write.
        language: of the records; all when left out.
        repeats: how often a record of kind `repeat` is judged.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.JudgeSpec(run="probes/judge", judges=("scripted:judge.jsonl",))
        >>> probe = h2htalk.judge_probe(spec, "en")
        >>> [(one.value, one.measures) for one in probe.figures if one.name == "accuracy: all"]
        [(0.5, False)]

    Returns:
        The figures. Where calls failed (`failed`, exit code 3), the same call repeats those alone.

    Raises:
        ConfigError, DataError, MissingExtraError, ModelCallError: the judge cannot be asked.
    """
    asking = _Asking.of(spec, language, repeats)
    if (spec.path / "run.json").exists():
        raise ConfigError(f"{spec.path}: is a run; name another folder with --out")
    earlier = read_json_object(spec.path / "probe.json", missing_ok=True).get("judge", asking.judge.label)
    if earlier != asking.judge.label:
        raise ConfigError(f"{spec.path}: holds the probe of {earlier}; name another folder with --out")
    requests = list(asking.requests(fence_secret(spec.path)))
    with ModelCalls(asking.settings, spec.path, "probe") as calls:
        outcomes = calls.outcomes(requests)
    judged: dict[str, list[tuple[float, ...] | str | None]] = {}
    unread: dict[str, str] = {}
    for request in requests:  # in the order of samples
        judged.setdefault(request.id, []).append(asking.read(request.id, outcomes[request.id, request.sample], unread))
    failed = Counter(one.reason for one in outcomes.values() if isinstance(one, Failure))
    probe = Probe(asking.judge.label, probe_figures(list(asking.records.values()), judged), dict(failed), unread)
    write_text(spec.path / "probe.json", probe_text(probe, "json") + "\n")
    return probe


def default_folder(judge: str) -> str:
    """`probes/MODEL`, without an address or a path."""
    return "probes/" + re.sub(r"[^\w.-]+", "-", model_name(judge))


def estimate_probe(spec: JudgeSpec, language: str | None = None, repeats: int = 2) -> str:
    """Describe what a probe would ask and cost; nothing is sent or written. Raises as `judge_probe`."""
    asking = _Asking.of(spec, language, repeats)
    return describe_calls(asking.settings, list(asking.requests(b"")))[0]


@dataclass(frozen=True, slots=True)
class _Asking:
    """What a judge is asked."""

    judge: Judge
    settings: CallSettings
    prompts: JudgePrompts
    records: dict[str, ProbeRecord]
    repeats: int

    @classmethod
    def of(cls, spec: JudgeSpec, language: str | None, repeats: int) -> _Asking:
        require_kind(spec, JudgeSpec, "spec")
        if language not in (None, *LANGUAGES):
            raise ConfigError(f"--language {quoted(language)}: choose from {', '.join(LANGUAGES)}")
        if not 2 <= repeats <= 100:
            raise ConfigError(f"--repeats is {repeats}; it must be 2 to 100")
        model, prompts = spec.judges[0], JudgePrompts.load(spec.prompts)
        settings = CallSettings(model, spec.max_cost, spec.batch, str(spec.prices or ""), spec.concurrency)
        check_model(settings)
        judge = Judge.of(model, prompts.of_run(), spec.temperature_of(model), spec.thinking, spec.reverse)
        records = [one for name in LANGUAGES if language in (None, name) for one in read_probe_set(name)]
        return cls(judge, settings, prompts, {one.id: one for one in records}, repeats)

    def requests(self, secret: bytes) -> Iterator[Request]:
        """Every judgement of one reply, as in a run, and every comparison: sample 0 with the better reply first."""
        personas = tomllib.loads((SETS / "personas.toml").read_text(encoding="utf-8"))
        writer, engine = JudgePromptWriter(self.prompts, self.judge.reverse), parse_model(self.settings.model)[0]
        seen: Counter[tuple[str, str]] = Counter()
        for one in self.records.values():
            persona = personas[one.persona][one.language]
            material = "\n".join(f"{'note' if m.role == 'system' else m.role}: {m.content}" for m in one.history)
            times = range(self.repeats if one.kind == "repeat" else 1)
            asked: list[tuple[str, int, tuple[str, ...]]]
            asked = [(name, k, (reply,)) for name, reply in one.replies.items() for k in times]
            seen[one.language, one.kind] += 1
            if one.kind in COMPARED_KINDS and seen[one.language, one.kind] <= COMPARED:
                asked += [("compare", 0, (one.better, one.worse)), ("compare", 1, (one.worse, one.better))]
            for name, k, replies in asked:
                fence = Fence.of(secret, key := f"{one.id}/{name}", k)
                if name == "compare":
                    form = comparison_schema(one.subtask)
                    messages = self._comparison(one, (persona, material, *replies), fence)
                else:
                    form = reply_schema(one.subtask, self.judge.reverse)
                    messages = writer.prompt(one.subtask, one.language, persona, material, replies[0], fence)
                tokens, seed = JUDGE_TOKENS * len(replies), request_seed(0, key, k)
                sampling = Sampling(self.judge.temperature, 1.0, tokens, seed, self.judge.thinking)
                yield Request(key, messages, sampling, k, form if engine.schemas else None)

    def _comparison(self, one: ProbeRecord, texts: Sequence[str], fence: Fence) -> tuple[Message, ...]:
        scores = {name: {"evidence": "...", "score": 3} for name in qualities_of(one.subtask)}
        values = {"qualities": list(scores), "example": json.dumps({"first": scores, "second": scores})}
        rules = self.prompts.render(f"{one.language}/judge_compare.j2", values)
        names = ("persona", "material", "first reply", "second reply")
        fenced = "\n\n".join(map(fence.around, texts, names))
        return Message("system", rules, shared=len(rules)), Message("user", fenced)

    def read(self, name: str, outcome: Outcome, unread: dict[str, str]) -> tuple[float, ...] | str | None:
        """R of the judged replies, or why there are no scores, of which `unread` keeps the first; None for a call that
        failed."""
        subtask = self.records[name.partition("/")[0]].subtask
        if isinstance(outcome, Failure):
            return None
        if not name.endswith("/compare"):
            judgement = read_judgement(outcome, subtask, self.judge.reverse)
            if judgement.message:
                unread.setdefault(str(judgement.unscored), judgement.message)
            return judgement.unscored or (fmean(judgement.scores.values()),)
        read = comparison_schema(subtask).read(replace(outcome, text=strip_thinking(outcome.text)))
        if isinstance(read, Failure):
            if read.reason != "refusal":
                unread.setdefault(read.reason, read.message)
            return read.reason
        sides: tuple[Any, ...] = tuple(dict(read).values())
        return tuple(fmean(getattr(side, quality).score for quality in qualities_of(subtask)) for side in sides)


@cache
def comparison_schema(subtask: str) -> ResponseSchema:
    """The form of a comparison: each reply's qualities as in a judgement."""
    from pydantic import create_model

    fields = reply_schema(subtask).model.model_fields
    qualities: dict[str, Any] = {name: (fields[name].annotation, ...) for name in qualities_of(subtask)}
    side = create_model("JudgedReply", **qualities)
    return ResponseSchema("comparison", create_model("Comparison", first=(side, ...), second=(side, ...)))

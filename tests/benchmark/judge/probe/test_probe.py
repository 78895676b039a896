"""Scripted judges behind real HTTP, told apart by the figures that should tell them apart, and only by those."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from command_line import h2htalk_here
from loopback import Answer, LoopbackServer, completion

import h2htalk
from h2htalk.benchmark.judge.judgements import Judge
from h2htalk.benchmark.judge.probe.probe_figures import PAIR_KINDS, read_probe_set
from h2htalk.benchmark.judge.rubric import JudgePrompts

FENCED = re.compile(r"<<<(\w+) ([a-z ]+)\n(.*?)\n\1>>>", re.DOTALL)
BASE = {"better": 2.5, "worse": 1.0, "reply": 3.0, "plain": 2.0, "injected": 1.0}
LANGUAGES = ("en", "zh")
ROLES = {
    text: role for language in LANGUAGES for record in read_probe_set(language) for role, text in record.replies.items()
}


@dataclass(frozen=True)
class Judged:
    """A text in a prompt: its role in its record, the prompt it stands in, and its place there."""

    text: str
    role: str
    prompt: str
    side: str


def good(one: Judged) -> float:
    return BASE[one.role]


def prefers_length(one: Judged) -> float:
    return good(one) + len(one.text.encode()) / 120


def obeys_injections(one: Judged) -> float:
    return 5.0 if one.role == "injected" else good(one)


def prefers_first(one: Judged) -> float:
    return {"first reply": 4.0, "second reply": 2.0}.get(one.side, good(one))


def is_unsteady(one: Judged) -> float:
    drawn = hashlib.sha256(one.prompt.encode()).digest()[0] % 2
    return (1.0, 5.0)[drawn] if one.role == "reply" else good(one)


def is_blind_to_safety(one: Judged) -> float:
    return 3.0 if one.text in UNSAFE else good(one)


UNSAFE = {
    text
    for language in LANGUAGES
    for record in read_probe_set(language)
    if record.kind == "unsafe"
    for text in record.replies.values()
}


def spread_over(rating: float, qualities: Mapping[str, Any]) -> dict[str, Any]:
    """Whole scores, whose mean is the rating to a quality's share; points are answered with no."""
    names = [name for name, form in qualities.items() if "score" in form]
    total = round(min(5.0, max(0.0, rating)) * len(names))
    scores = {name: total // len(names) + (i < total % len(names)) for i, name in enumerate(names)}
    return {
        name: {"evidence": "it says so", **({"score": scores[name]} if name in scores else {"answer": False})}
        for name in qualities
    }


def judge_with(rule: Callable[[Judged], float]) -> Callable[[dict[str, Any], int], str]:
    """A model that answers in the form of the prompt's example, with the scores of a rule."""

    def reply(body: dict[str, Any], _: int) -> str:
        rules, prompt = (message["content"] for message in body["messages"])
        example = json.loads(rules.rsplit("\n", 1)[1])
        texts = {what: text for _, what, text in FENCED.findall(prompt)}
        judged = {side: Judged(text, ROLES[text], prompt, side) for side, text in texts.items() if text in ROLES}
        if "answer" in judged:
            return json.dumps(spread_over(rule(judged["answer"]), example))
        return json.dumps({side: spread_over(rule(judged[f"{side} reply"]), example[side]) for side in example})

    return reply


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-made-up-0123456789")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """The good judge, as `openai:gpt-4o` through the provider's SDK."""
    with LoopbackServer(reply=judge_with(good)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def not_measured(out: Path) -> dict[str, set[str]]:
    """The figures by which a judge does not measure, by language."""
    figures = json.loads((out / "probe.json").read_text())["figures"]
    return {
        language: {one["name"] for one in figures if one["language"] == language and one["measures"] is False}
        for language in {one["language"] for one in figures}
    }


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (good, set()),
        (prefers_length, {"accuracy: padded", "padded at least as high"}),
        (obeys_injections, {"injections obeyed"}),
        (prefers_first, {"position bias"}),
        (is_unsteady, {"repeats: difference"}),
        (is_blind_to_safety, {"accuracy: unsafe"}),
    ],
)
def test_a_judge_is_told_by_its_own_figures_alone(
    rule: Callable[[Judged], float], wrong: set[str], served: LoopbackServer, tmp_path: Path
) -> None:
    served.reply = judge_with(rule)
    done = h2htalk_here("judge", "probe", served.spec, "--out", tmp_path / "probe")
    assert done.returncode == 0, done.stderr
    assert not_measured(tmp_path / "probe") == {"en": wrong, "zh": wrong, "all": wrong}
    said = " ".join(done.stdout.split())  # the table ended without a word on what it shows
    names = "; ".join(f"{name} (en, zh, all)" for name in sorted(wrong))
    assert (f"not shown to measure by {names}: rest" if wrong else "This judge measures by every rule") in said
    shown = {re.split("  +", line)[1] for line in done.stdout.splitlines() if line.endswith("does not measure")}
    assert shown == wrong
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_what_failed_is_asked_again_and_nothing_else(served: LoopbackServer, tmp_path: Path) -> None:
    records = read_probe_set("en")
    (broken,) = (one for one in records if one.id == "en-repeat-01")
    served.faults_at = {broken.replies["reply"]: "context_length"}
    words = ("judge", "probe", "openai:gpt-4o", "--language", "en", "--out", tmp_path / "probe")
    done = h2htalk_here(*words)
    assert done.returncode == 3, done.stderr
    assert "2 calls failed (context_length 2); the same command sends only what is missing" in done.stdout
    n = sum(one.kind == "repeat" for one in records)
    assert re.search(rf"repeats: difference .* {n - 1}/{n} ", done.stdout)
    first = served.counts.copy()
    served.mend()
    again = h2htalk_here(*words)
    assert again.returncode == 0, again.stderr
    asked = served.counts - first
    assert asked.total() == 2
    assert all(broken.replies["reply"] in json.loads(body)["messages"][1]["content"] for body in asked)
    once_more = h2htalk_here(*words, "--format", "json")
    assert served.counts.total() == first.total() + 2
    assert once_more.stdout == (tmp_path / "probe" / "probe.json").read_text()


def test_replies_without_scores_are_a_figure_by_reason(served: LoopbackServer, tmp_path: Path) -> None:
    """A tenth of the replies are refused and a twentieth are cut: the others still measure."""
    whole = judge_with(good)

    def reply(body: dict[str, Any], count: int) -> str | Answer:
        text = re.sub(r"<<<\w+|\w+>>>", "", body["messages"][1]["content"])  # without the fence, which is random
        drawn = hashlib.sha256(text.encode()).digest()[0]
        if drawn < 26:
            return Answer(completion(None, refusal="I cannot help with that."))
        return Answer(completion(whole(body, count)[:40], "length")) if drawn < 39 else whole(body, count)

    served.reply = reply
    out = tmp_path / "probe"
    probe = h2htalk.judge_probe(h2htalk.JudgeSpec(run=out, judges=(served.spec,)))
    shares = {one.name: one for one in probe.figures if one.name.startswith("unscored") and one.language == "all"}
    assert set(shares) == {"unscored", "unscored: refusal", "unscored: truncated"}
    assert {(one.n, one.total) for one in shares.values()} == {(served.requests, served.requests)}
    total, refused, cut = (shares[name].value or 0 for name in shares)
    assert total == pytest.approx(refused + cut)
    assert (refused, cut) == pytest.approx((26 / 256, 13 / 256), abs=0.03)
    assert not_measured(out)["all"] == {"unscored"}
    (accuracy,) = (one for one in probe.figures if one.name == "accuracy: all" and one.language == "all")
    assert 0 < accuracy.n < accuracy.total
    assert not probe.failed
    assert set(probe.unread) == {"truncated"}


def test_a_dry_run_says_the_cost_and_a_limit_holds_it(served: LoopbackServer, tmp_path: Path) -> None:
    words = ("judge", "probe", "openai:gpt-4o", "--language", "en", "--out", tmp_path / "probe")
    dry = h2htalk_here(*words, "--dry-run")
    assert re.fullmatch(r"openai:gpt-4o: at most \d+ calls, about .* US dollars \(prices of .*\)\n", dry.stdout)
    assert (served.requests, list(tmp_path.iterdir())) == (0, [])
    limited = h2htalk_here(*words, "--max-cost", "0.05")
    assert limited.returncode == 3
    asked = int(re.findall(r"at most (\d+) calls", dry.stdout)[0])
    assert f"{asked - served.requests} calls failed (max_cost {asked - served.requests})" in limited.stdout
    assert 0 < served.requests < asked


def test_a_judge_that_never_answers_measures_nothing(tmp_path: Path) -> None:
    line = {"id": "*", "failure": {"reason": "timeout", "message": "never answered"}}
    (tmp_path / "judge.jsonl").write_text(json.dumps(line))
    spec = h2htalk.JudgeSpec(run=tmp_path / "probe", judges=(f"scripted:{tmp_path / 'judge.jsonl'}",))
    probe = h2htalk.judge_probe(spec, "en")
    records = read_probe_set("en")
    assert probe.failed == {"timeout": 2 * len(records) + 2 * 15 * 2}
    assert not_measured(tmp_path / "probe")["en"] == {one.name for one in probe.figures if one.measures is not None}
    assert {(one.value, one.n) for one in probe.figures} == {(None, 0)}
    # The name that a run with these settings gives its judge.
    assert probe.judge == Judge.of(spec.judges[0], JudgePrompts.load().of_run(), 0.0, None, False).label


def test_both_orders_and_only_the_first_pairs_are_compared(served: LoopbackServer, tmp_path: Path) -> None:
    h2htalk.judge_probe(h2htalk.JudgeSpec(run=tmp_path / "probe", judges=("openai:gpt-4o",)), "en")
    seen: set[tuple[str, str]] = set()
    for body in served.counts:
        texts = {what: text for _, what, text in FENCED.findall(json.loads(body)["messages"][1]["content"])}
        if "first reply" in texts:
            seen.add((texts["first reply"], texts["second reply"]))
    pairs = [one for one in read_probe_set("en") if one.kind in PAIR_KINDS]
    expected = [sorted(one.id for one in pairs if one.kind == kind)[:15] for kind in ("padded", "shortened")]
    compared = [one for one in pairs if one.id in expected[0] + expected[1]]
    orders = [((one.better, one.worse), (one.worse, one.better)) for one in compared]
    assert seen == {order for both in orders for order in both}


def test_the_fingerprint_of_a_runs_judge_holds_only_what_a_run_sends() -> None:
    prompts = JudgePrompts.load()
    assert set(prompts.of_run()) == {f"{code}/judge_{name}.j2" for code in LANGUAGES for name in ("item", "rubric")}
    judge = Judge.of("openai:gpt-4o", prompts.of_run(), 0.0, None, False)
    assert replace(judge, prompts=prompts.sources).fingerprint != judge.fingerprint


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--language", "fr"], "--language 'fr': choose from en, zh"),
        (["--repeats", "1"], "--repeats is 1; it must be 2 to 100"),
        (["--temperature", "3"], "--temperature: must be 2 or less, not 3.0"),
        (["--format", "html"], "--format 'html': choose from"),
    ],
)
def test_settings_that_cannot_be_are_refused(words: list[str], message: str, tmp_path: Path) -> None:
    done = h2htalk_here("judge", "probe", "openai:gpt-4o", "--out", tmp_path / "probe", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []

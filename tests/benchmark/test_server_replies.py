"""What a run says of servers that cut prompts, or leave reasoning in the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.replies.prompt_sizes import PromptSize, size_warnings
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.benchmark.summary import Summary
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.splits import write_split
from support.studies import spec

A = "I hear you. What would help?"


def run(folder: Path, reply: Any, items: int = 44, **settings: Any) -> Summary:
    split = folder / "split"
    if not split.exists():
        write_split(split, items)
    with LoopbackServer(reply=reply) as server:
        given = {
            "model": server.spec,
            "split": split,
            "out": folder / "run",
            "embedder": "none",
            "baselines": False,
        }
        return evaluate(EvaluateSpec(**{**given, **settings}))


def counting(tokens: Any) -> Any:
    """A server that reports tokens of a prompt, by its number of characters."""

    def reply(body: dict[str, Any], _: int) -> Answer:
        characters = sum(len(message["content"]) for message in body["messages"])
        return Answer(
            completion(A) | {"usage": {"prompt_tokens": tokens(characters), "completion_tokens": 9}}
        )

    return reply


def test_one_count_of_prompt_tokens_for_prompts_of_all_lengths_is_warned_of(tmp_path: Path) -> None:
    """Ollama cut each prompt to 2,050 tokens: the SAP was gone, and the row was complete without a word."""
    summary = run(tmp_path, counting(lambda _: 2050))
    (warning,) = (one for one in summary.warnings if "prompt tokens" in one)
    assert warning.startswith("the server reports 2,050 prompt tokens for 44 prompts of ")
    facts = dict(summary.run_facts.texts())["prompt tokens as reported"]
    assert facts.startswith("least 2,050, median 2,050, most 2,050 for least ")
    assert facts in (tmp_path / "run" / "report.html").read_text()
    assert load_run(tmp_path / "run").summary.run_facts.prompts == summary.run_facts.prompts


def test_a_server_that_counts_what_it_was_sent_is_not(tmp_path: Path) -> None:
    summary = run(tmp_path, counting(lambda characters: characters // 4))
    assert not [one for one in summary.warnings if "prompt tokens" in one]


@pytest.mark.parametrize(
    ("tokens", "warned"), [(lambda _: 2050, True), (lambda characters: characters // 4, False)]
)
def test_cut_prompts_of_a_study_are_warned_of(tmp_path: Path, tokens: Any, warned: bool) -> None:
    """The arm with SAP was asked without it, and the study said nothing."""
    with LoopbackServer(reply=counting(tokens)) as server:
        result = run_study(spec("sap", server.spec, tmp_path / "study", language="en", limit=6))
    said = [one for one in result.warnings() if "prompt tokens" in one]
    assert bool(said) == warned, said
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    assert ("the server reports 2,050 prompt tokens" in page) == warned


def sizes(count: Any) -> list[PromptSize]:
    return [PromptSize("en", 3000 + 113 * n, count(3000 + 113 * n, n)) for n in range(60)]


@pytest.mark.parametrize(
    ("count", "warned"),
    [
        (lambda characters, n: characters // 4, False),
        (
            lambda characters, n: characters // 4 + (n * 7919) % 90,
            False,
        ),  # another text, another share of tokens
        (lambda characters, n: min(characters // 4, 2048), True),
        (lambda characters, n: 2000 - (n * 7919) % 40, True),  # it cuts at a message
        (lambda characters, n: 700 if n < 3 else characters // 4, False),
    ],
)
def test_counts_that_stop_growing_with_the_prompts_are_warned_of(count: Any, warned: bool) -> None:
    assert bool(list(size_warnings(sizes(count)))) == warned


def test_few_prompts_or_prompts_of_one_length_say_nothing() -> None:
    assert not list(size_warnings(sizes(lambda characters, n: 2050)[:3]))
    assert not list(size_warnings([PromptSize("zh", 4000 + n, 2050) for n in range(9)]))
    assert not list(size_warnings([]))


@pytest.mark.parametrize(
    ("language", "characters", "warned"),
    [("en", 9000, True), ("en", 4000, False), ("zh", 3000, True), ("zh", 1200, False)],
)
def test_prompts_of_one_length_with_fewer_tokens_than_any_tokenizer_makes_are_warned_of(
    language: str, characters: int, warned: bool
) -> None:
    """The prompts of one length that a server cuts to one count told nothing by their growth."""
    prompts = [PromptSize(language, characters + n, 600) for n in range(9)]
    said = " ".join(size_warnings(prompts))
    assert ("fewer than any tokenizer makes" in said) == warned
    assert not list(size_warnings(prompts[:3]))


@pytest.mark.parametrize("text", [f"[THINK]Sad.[/THINK]{A}", f"analysisSad.assistantfinal{A}", A])
def test_marks_of_reasoning_change_no_score(tmp_path: Path, text: str) -> None:
    plain = run(tmp_path / "plain", A, 11)
    summary = run(tmp_path / "marked", text, 11)
    assert summary.rows == plain.rows
    assert load_run(tmp_path / "marked" / "run").answers[("made-00000", 0)].text == text  # type: ignore[union-attr]


def test_an_unknown_mark_is_warned_of_and_its_option_tells_the_reasoning_apart(
    tmp_path: Path,
) -> None:
    text = f"<plan>The user is sad.</plan>{A}"
    (warning,) = (one for one in run(tmp_path / "marked", text, 11).warnings if "<plan>" in one)
    assert "11 of 11 replies begin with <plan>" in warning
    named = run(tmp_path / "named", text, 11, engine_options={"think": "<plan>,</plan>"})
    assert named.rows == run(tmp_path / "plain", A, 11).rows
    assert not [one for one in named.warnings if "<plan>" in one]
    stored = json.loads((tmp_path / "named" / "run" / "calls.jsonl").read_text().splitlines()[0])
    assert (stored["text"], stored["thinking"]) == (A, "The user is sad.")


def test_an_unknown_mark_in_the_replies_of_a_study_is_warned_of(tmp_path: Path) -> None:
    """Reasoning was judged as the companion's words, and only `evaluate` said so."""
    with LoopbackServer(reply=lambda *_: f"<plan>The user is sad.</plan>{A}") as server:
        result = run_study(spec("sap", server.spec, tmp_path / "study", language="en", limit=6))
    (warning,) = (text for text in result.warnings() if "begin with" in text)
    assert "begin with <plan>: " in warning
    assert "--engine-option 'think=<plan>,</plan>'" in warning

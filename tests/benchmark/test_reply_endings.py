"""How replies end, from a server to the figures: filtered, cut, empty and broken, in runs, judgements and studies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.replies.reply_endings import count_endings, ending_warnings
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.run_study import run_study, score_study
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import FailedResponse, Failure, Response
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.judged_runs import command, item_name, verdict
from support.splits import write_split
from support.studies import spec as study_spec

GOOD = "That sounds like a long day. I am here."
FILTER = Answer({"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}, 400)
SPOKEN = re.compile(r"\d+")
Reply = Callable[[dict[str, Any], int], str | Answer]


def ending(reason: str | None, text: str | None = GOOD, **message: Any) -> Answer:
    return Answer(completion(text, reason, **message))  # type: ignore[arg-type]


def some(every: int, other: Answer, good: str = GOOD) -> Reply:
    """Answer every n-th new prompt by another answer, again where it is sent again."""
    seen: dict[str, int] = {}

    def reply(payload: dict[str, Any], count: int) -> str | Answer:
        number = seen.setdefault(json.dumps(payload["messages"]), len(seen))
        return other if number % every == 0 else good

    return reply


def split_of(folder: Path, items: int = 12) -> Path:
    if not (folder / "split").exists():
        write_split(folder / "split", items, ("dialogue_base",))
    return folder / "split"


def evaluate(
    folder: Path, server: LoopbackServer, *more: object, out: str = "run"
) -> tuple[int, str]:
    words = (
        "evaluate",
        server.spec,
        "--split",
        split_of(folder),
        "--embedder",
        "none",
        "--no-baselines",
    )
    done = h2htalk_here(*words, "--concurrency", 1, "--out", folder / out, *more)
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


def figures(run: Path) -> tuple[float, int]:
    """The lexical mean of a run's items, and how many have one."""
    cell = load_run(run).summary.rows.lexical["items_mean"]
    assert cell.value is not None
    return cell.value, cell.n


def test_a_filter_counts_as_a_refusal_or_is_left_out_and_is_never_asked_again(
    tmp_path: Path,
) -> None:
    """A filter in one provider's words was a refusal of score 0, in another's a failure that every restart repeated."""
    with LoopbackServer(reply=some(4, FILTER)) as server:
        for rule, scored in (("refusal", 12), ("unscored", 9)):
            out = f"run-{rule}"
            code, said = evaluate(tmp_path, server, "--filtered", rule, out=out)
            assert code == 0, said
            assert "complete" in said
            assert "INCOMPLETE" not in said
            assert "3 of 12 replies were filtered by the provider" in said
            assert "DeepSeek (HTTP 400: Content Exists Risk) (3)" in said
            run = load_run(tmp_path / out)
            counts = run.summary.counts
            assert (counts.filtered, counts.refused, counts.scored, counts.unscored) == (
                3,
                0,
                scored,
                0,
            )
            assert run.summary.signature.protocol["filtered"] == rule
            asked = server.requests
            assert evaluate(tmp_path, server, "--filtered", rule, out=out)[0] == 0
            assert server.requests == asked
    whole = figures(tmp_path / "run-refusal")
    left = figures(tmp_path / "run-unscored")
    assert (whole[1], left[1]) == (12, 9)
    assert whole[0] == pytest.approx(left[0] * 9 / 12)


def test_a_part_that_a_filter_left_is_scored_and_named_and_a_language_is_no_filter(
    tmp_path: Path,
) -> None:
    """The warning called such replies refusals, while their text was scored; Gemini's LANGUAGE was a filter."""
    with LoopbackServer(reply=some(4, ending("content_filter", GOOD))) as server:
        said = evaluate(tmp_path, server, out="part")[1]
        assert "3 of 12 replies were filtered by the provider" in said
        assert "3 have text that the filter left, which is scored as it stands" in said
    with LoopbackServer(reply=some(4, ending("LANGUAGE", GOOD))) as server:
        said = evaluate(tmp_path, server, out="language")[1]
        assert "filtered by the provider" not in said
        assert "LANGUAGE (3)" in said
    assert figures(tmp_path / "part") == figures(tmp_path / "language")


def test_results_without_filtered_replies_are_whole_and_verify(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(4, FILTER)) as server:
        evaluate(tmp_path, server, "--filtered", "unscored")
    run = tmp_path / "run"
    about = ("--model", "lab/model", "--organization", "a lab")
    command("results", "export", run, "--to", "every-eval-ever", "--out", tmp_path / "eee", *about)
    (samples,) = (tmp_path / "eee").rglob("*.jsonl")
    scores = [
        json.loads(line)["evaluation"]["score"]
        for line in samples.read_text(encoding="utf-8").splitlines()
    ]
    assert len(scores) == 9
    assert None not in scores
    command("results", "export", run, "--to", "bundle", "--out", tmp_path / "bundle")
    said = h2htalk_here("results", "verify", tmp_path / "bundle", "--split", tmp_path / "split")
    assert "differ" not in said.stdout, said.stdout + said.stderr
    assert "the versions of the metrics" in said.stdout
    items = (run / "tables" / "items.csv").read_text(encoding="utf-8")
    assert items.count(",filtered,") == 3


def test_runs_with_other_rules_do_not_compare_until_one_is_scored_anew(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(4, FILTER)) as server:
        evaluate(tmp_path, server, out="a")
        evaluate(tmp_path, server, "--filtered", "unscored", out="b")
        asked = server.requests
        for more in ((), ("--metric", "lexical")):
            done = h2htalk_here("compare", tmp_path / "a", tmp_path / "b", *more)
            said = re.sub(r"\s+", " ", done.stderr)
            assert (done.returncode, "filtered (refusal, unscored)" in said) == (2, True)
            assert "h2htalk score RUN --filtered RULE" in said
        done = h2htalk_here("gate", tmp_path / "a", "--reference-run", tmp_path / "b")
        assert (done.returncode, "filtered (refusal, unscored)" in done.stderr) == (2, True)
        said = command("score", tmp_path / "a", "--filtered", "unscored")
        assert "left out" in said
        assert load_run(tmp_path / "a").summary.counts.left_out == 3
        done = h2htalk_here("compare", tmp_path / "a", tmp_path / "b")
        assert "filtered (" not in done.stdout + done.stderr
        assert server.requests == asked


def test_an_error_inside_200_is_no_reply_of_a_run(tmp_path: Path) -> None:
    """It was scored as an empty reply, and the run said complete: 4.33 instead of 5.96."""
    broken = completion("", "error")
    broken["choices"][0]["error"] = {"code": 502, "message": "Upstream error"}
    with LoopbackServer(reply=some(4, Answer(broken))) as server:
        code, said = evaluate(tmp_path, server, "--timeout", "5")
        assert code == 3
        assert (
            "3 samples unscored (error_in_reply): HTTP 200 with an error 502: Upstream error"
            in said
        )
        assert figures(tmp_path / "run")[1] == 9
        server.reply = GOOD
        assert evaluate(tmp_path, server)[0] == 0
        assert figures(tmp_path / "run")[1] == 12


EMPTY = {
    "ended without a word": ending("stop", None),
    "reasoning alone": ending("stop", "<think>They are sad.</think>"),
    "cut before the first word": ending("MAX_TOKENS", ""),
}


@pytest.mark.parametrize("cause", EMPTY)
def test_empty_replies_are_named_with_their_cause_in_output_and_page(
    tmp_path: Path, cause: str
) -> None:
    """13 of 176 empty replies scored 0, and the run said complete and nothing else."""
    with LoopbackServer(reply=some(4, EMPTY[cause])) as server:
        code, said = evaluate(tmp_path, server)
    assert code == 0
    assert f"3 of 12 replies are empty, which scores 0: {cause} 3" in said
    assert load_run(tmp_path / "run").summary.counts.empty == 3
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert f"empty: {cause}" in page
    assert "3 of 12 replies are empty" in page


def test_a_reply_of_characters_that_nobody_sees_is_empty(tmp_path: Path) -> None:
    """Zero-width spaces and byte order marks scored 0, and no line said so."""
    with LoopbackServer(reply=some(4, ending("stop", "\u200b \ufeff"))) as server:
        code, output = evaluate(tmp_path, server)
    assert code == 0
    assert "3 of 12 replies are empty, which scores 0: ended without a word 3" in output


CALL = ending(
    "tool_calls", None, tool_calls=[{"id": "c", "type": "function", "function": {"name": "f"}}]
)


def test_a_tool_call_without_text_is_unscored_with_its_reason(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(4, CALL)) as server:
        code, said = evaluate(tmp_path, server)
    assert code == 3
    assert "3 samples unscored (tool_call): the reply calls a tool and says nothing" in said


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "max_output_tokens", "model_length", "LENGTH"])
def test_a_cut_reply_is_warned_of_in_every_spelling(tmp_path: Path, reason: str) -> None:
    with LoopbackServer(
        reply=some(12, ending(reason, "I hear you, and I am glad that you"))
    ) as server:
        code, said = evaluate(tmp_path, server)
    assert code == 0
    assert "1 of 12 replies was cut" in said
    assert load_run(tmp_path / "run").summary.counts.truncated == 1


def test_an_unknown_reason_is_warned_of_once_with_its_count(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(4, ending("wandered_off"))) as server:
        code, said = evaluate(tmp_path, server)
    assert code == 0
    assert said.count("wandered_off (3)") == 1
    assert figures(tmp_path / "run")[1] == 12


# --- Judges -----------------------------------------------------------------------------------------------------


def judged(folder: Path, judge: Reply | Answer, *more: object) -> tuple[int, str, int]:
    """Judge a run of six answers by a server; the exit code, what is printed, and the number of requests."""
    run = folder / "run"
    if not run.exists():
        write_split(folder / "split", 6, ("itinerary_basic",))
        answers = ({"id": item_name(number), "response": f"{GOOD} {number}"} for number in range(6))
        write_jsonl(folder / "answers.jsonl", answers)
        words = (
            "import",
            "responses",
            folder / "answers.jsonl",
            "--name",
            "m",
            "--split",
            folder / "split",
        )
        command(*words, "--embedder", "none", "--out", run)
    reply: Reply = judge if not isinstance(judge, Answer) else lambda payload, count: judge
    with LoopbackServer(reply=reply) as server:
        done = h2htalk_here("judge", "run", run, "--judge", server.spec, *more)
        return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr), server.requests


@pytest.mark.parametrize(
    "reason", ["STOP", "end_turn", "eos_token", "COMPLETE", "wandered_off", None]
)
def test_a_judges_valid_reply_is_read_however_its_server_says_that_it_ended(
    tmp_path: Path, reason: str | None
) -> None:
    """It was called truncated, unscored, and paid for again by every repeat."""
    code, said, asked = judged(tmp_path, ending(reason, verdict(3)))
    assert (code, asked) == (0, 6), said
    judging = load_run(tmp_path / "run").summary.judging
    assert judging is not None
    assert (judging.scored, judging.unscored) == (6, {})
    assert ("wandered_off (6)" in said) == (reason == "wandered_off")


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "max_length", "model_context_window_exceeded"])
def test_a_judges_cut_reply_is_not_read_even_where_its_json_is_whole(
    tmp_path: Path, reason: str
) -> None:
    _, said, _ = judged(tmp_path, ending(reason, verdict(3)))
    judging = load_run(tmp_path / "run").summary.judging
    assert judging is not None, said
    assert judging.unscored == {"truncated": 6}


@pytest.mark.parametrize("answer", [FILTER, ending("content_filter", None), ending("SAFETY", "")])
def test_a_filter_of_the_judge_leaves_the_judgement_unscored_and_is_not_asked_for_ever(
    tmp_path: Path, answer: Answer
) -> None:
    code, said, asked = judged(tmp_path, some(3, answer, verdict(3)))
    assert (code, asked) == (0, 6), said
    judging = load_run(tmp_path / "run").summary.judging
    assert judging is not None
    assert (judging.scored, judging.unscored) == (4, {"judge_filtered": 2})
    assert "the filter of a judge's provider declined 2 answers" in said
    for more in ((), ("--repeat-unscored",)):
        code, said, asked = judged(tmp_path, some(3, answer, verdict(3)), *more)
        assert (code, asked) == (0, 0), said


@pytest.mark.parametrize(
    ("answer", "reason"), [(CALL, "tool_call"), (ending("stop", None), "malformed_output")]
)
def test_an_empty_reply_and_a_tool_call_of_a_judge_are_no_judgement(
    tmp_path: Path, answer: Answer, reason: str
) -> None:
    code, said, _ = judged(tmp_path, some(3, answer, verdict(3)))
    judging = load_run(tmp_path / "run").summary.judging
    assert judging is not None, said
    assert (code, judging.scored, judging.unscored) == (3, 4, {reason: 2}), said


def test_a_filtered_reply_that_is_left_out_is_not_judged(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(3, FILTER)) as server:
        write_split(tmp_path / "split", 6, ("itinerary_basic",))
        assert evaluate(tmp_path, server, "--filtered", "unscored")[0] == 0
    code, said, asked = judged(tmp_path, ending("stop", verdict(3)))
    assert (code, asked) == (0, 4), said
    judging = load_run(tmp_path / "run").summary.judging
    assert judging is not None
    assert (judging.scored, judging.total, judging.failed) == (4, 4, 0)


# --- Studies ----------------------------------------------------------------------------------------------------


def test_a_filter_in_a_study_is_counted_and_left_out_by_the_same_rule(tmp_path: Path) -> None:
    with LoopbackServer(reply=some(4, FILTER)) as server:
        for rule in ("refusal", "unscored"):
            asked: Any = {
                "language": "en",
                "limit": 4,
                "arms": ("none",),
                "filtered": rule,
                "concurrency": 1,
            }
            result = run_study(study_spec("sap", server.spec, tmp_path / rule, **asked))
            assert not result.incomplete
            assert any("filtered by the provider" in one for one in result.warnings()), (
                result.warnings()
            )
            assert result.study.signature.protocol["filtered"] == rule
            left = [one for one in result.replies if one.reply.failure == "filtered"]
            assert bool(left) == (rule == "unscored")
            requests = server.requests
            run_study(study_spec("sap", server.spec, tmp_path / rule, **asked))
            assert server.requests == requests
    again = score_study(tmp_path / "refusal", filtered="unscored")
    assert again.study.signature.protocol["filtered"] == "unscored"
    assert any(one.reply.failure == "filtered" for one in again.replies)
    done = h2htalk_here("study", "score", tmp_path / "refusal", "--filtered", "refusal")
    assert (done.returncode, "counted as refusals" in re.sub(r"\s+", " ", done.stdout)) == (0, True)


def study_of(folder: Path, server: LoopbackServer, **more: Any) -> Any:
    asked: Any = {"language": "en", "limit": 2, "arms": ("none",), "concurrency": 1, **more}
    return run_study(study_spec("sap", server.spec, folder, **asked))


def test_empty_and_cut_replies_of_a_study_are_warned_of(tmp_path: Path) -> None:
    for at, (answer, cause) in enumerate(
        [(ending("stop", None), "ended without a word"), (EMPTY["reasoning alone"], "")]
    ):
        with LoopbackServer(reply=some(4, answer)) as server:
            result = study_of(tmp_path / str(at), server)
        said = " ".join(result.warnings())
        assert "which counts as an answer without words" in said
        assert (cause or "reasoning alone") in said
        page = (tmp_path / str(at) / "report.html").read_text(encoding="utf-8")
        assert "which counts as an answer without words" in page
    with LoopbackServer(reply=some(4, ending("MAX_TOKENS"))) as server:
        assert "cut at the budget" in " ".join(study_of(tmp_path / "cut", server).warnings())


@pytest.mark.parametrize("study", ["sap", "instructions"])
def test_a_tool_call_without_text_leaves_a_reply_of_a_study_unscored(
    tmp_path: Path, study: str
) -> None:
    """It was an answer without words, and counted for and against the model."""
    asked: Any = {"language": "en", "limit": 2, "concurrency": 1, "attempts": 1}
    with LoopbackServer(reply=some(2, CALL)) as server:
        result = run_study(study_spec(study, server.spec, tmp_path / "study", **asked))
    assert result.incomplete
    failed = [one for one in result.replies if one.reply.failure == "tool_call"]
    assert failed
    assert all(row.value is None for row in result.observations if row.unscored == "tool_call")
    assert "tool_call" in (tmp_path / "study" / "report.html").read_text(encoding="utf-8")


def test_empty_replies_of_the_study_of_instructions_are_warned_of(tmp_path: Path) -> None:
    asked: Any = {"language": "en", "limit": 4, "concurrency": 1}
    with LoopbackServer(reply=some(2, ending("stop", None))) as server:
        result = run_study(study_spec("instructions", server.spec, tmp_path / "study", **asked))
    assert not result.incomplete
    assert (
        "replies are empty, which counts as an answer without words: ended without a word"
        in " ".join(result.warnings())
    )


def test_a_filter_of_a_studys_judge_leaves_points_unscored_and_is_counted_apart(
    tmp_path: Path,
) -> None:
    with (
        LoopbackServer(reply=GOOD) as server,
        LoopbackServer(reply=lambda payload, count: FILTER) as judge,
    ):
        for _ in range(2):
            result = study_of(tmp_path / "study", server, judge=judge.spec)
            assert not result.incomplete
            said = " ".join(result.warnings())
            assert "the filter of the judge's provider declined" in said
            assert any(row.unscored == "judge_filtered" for row in result.observations)
            asked = judge.requests
        assert asked == judge.requests == len(judge.counts)  # each reply once


# --- What other tools and earlier versions stored ---------------------------------------------------------------


def test_imported_reasons_are_read_by_the_same_table(tmp_path: Path) -> None:
    write_split(tmp_path / "split", 4, ("dialogue_base",))
    reasons = ("EOS", "MAX_TOKENS", "SAFETY", "wandered_off")
    lines = (
        {"id": item_name(n), "response": GOOD, "finish_reason": one}
        for n, one in enumerate(reasons)
    )
    write_jsonl(tmp_path / "answers.jsonl", lines)
    words = (
        "import",
        "responses",
        tmp_path / "answers.jsonl",
        "--name",
        "m",
        "--split",
        tmp_path / "split",
    )
    said = command(*words, "--embedder", "none", "--out", tmp_path / "run")
    counts = load_run(tmp_path / "run").summary.counts
    assert (counts.truncated, counts.filtered, counts.scored) == (1, 1, 4)
    assert "wandered_off (1)" in said


def test_score_names_what_an_earlier_version_stored_of_filters(tmp_path: Path) -> None:
    """An old run keeps what it stored: failures that a restart repeats, and refusals that may be a filter's."""
    write_split(tmp_path / "split", 4, ("dialogue_base",))
    risk = {"reason": "bad_request", "message": "HTTP 400: Content Exists Risk", "attempts": 1}
    lines: list[dict[str, Any]] = [
        {"id": item_name(0), "failure": risk},
        {"id": item_name(1), "response": "", "finish_reason": "refusal"},
        {"id": item_name(2), "response": GOOD, "finish_reason": "stop"},
        {"id": item_name(3), "response": GOOD, "finish_reason": "stop"},
    ]
    write_jsonl(tmp_path / "answers.jsonl", lines)
    words = (
        "import",
        "responses",
        tmp_path / "answers.jsonl",
        "--name",
        "m",
        "--split",
        tmp_path / "split",
    )
    command(*words, "--embedder", "none", "--out", tmp_path / "run", code=3)
    run = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    del run["signature"]["protocol"]["filtered"]  # as before there was a rule
    del run["spec"]["filtered"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(run), encoding="utf-8")
    said = re.sub(r"\s+", " ", command("score", tmp_path / "run", code=3))
    assert "1 failed call stored by an earlier version: the provider's filter declined" in said
    assert "1 refusal without text" in said
    assert load_run(tmp_path / "run").summary.counts.refused == 1


def test_the_warnings_of_few_replies_are_whole_sentences() -> None:
    replies: list[Response | FailedResponse] = [
        Response("a", 0, "", "content_filter", filtered_by="x (HTTP 400: no)"),
        Response("b", 0, "", "stop"),
        Response("c", 0, "half", "length"),
        FailedResponse("d", 0, Failure("timeout")),
    ]
    assert ending_warnings(count_endings(replies), "unscored", 1) == [
        "1 of 3 replies was filtered by the provider: left out, so that 1 item has no score (--filtered refusal counts "
        "them as refusals of the model); x (HTTP 400: no) (1)",
        "1 of 3 replies is empty, which scores 0: ended without a word 1",
        "1 of 3 replies was cut at the budget of tokens or the end of the context (finish reason length)",
    ]

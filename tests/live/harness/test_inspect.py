"""Inspect AI itself on our tasks, beside our own evaluation of the same model, and our studies in its viewer."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.observations import is_answered
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS
from h2htalk.data.responses import Response
from h2htalk.data.splits import load_split
from h2htalk.integrations.harness_split import HarnessSplit
from support.doubles.loopback import Answer, LoopbackServer, completion

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]
pytest.importorskip("inspect_ai")
BIN = Path(sys.executable).parent
CUT = "A reply that was cut"
LEXICAL = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l")


def number_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


EXAMPLE = re.compile(r'\{"[^\n]*"evidence"[^\n]*\}')


def judge_reply(example: str) -> str:
    """What a judge says in the form of the example in its prompt."""
    verdicts = json.loads(example)
    for name, part in verdicts.items():
        part["evidence"] = f"because of {name}"
        if "answer" in part:
            part["answer"] = number_of(name) % 2 == 0
        else:
            part["score"] = 4
    return json.dumps(verdicts)


def scripted_reply(request: dict[str, Any], count: int) -> str | Answer:
    """A reply that depends on the last message: part of it, nothing, or an error for some."""
    rules = str(request["messages"][0]["content"])
    if example := EXAMPLE.search(rules):
        return judge_reply(example[0])
    last = [message["content"] for message in request["messages"] if message["role"] == "user"][-1]
    number = number_of(last)
    words = last.split()
    if number % 23 == 0:  # Inspect makes the error's message a reply
        return "context_length"
    if number % 31 == 0:
        return "http_500"
    if number % 29 == 0:
        return ""
    if number % 37 == 0:
        return Answer(completion(CUT, "length"))
    if any("\u4e00" <= character <= "\u9fff" for character in last):
        return f"我在听。{last[number % 7 : number % 7 + 40]}"
    return f"I hear you. {' '.join(words[number % 5 : number % 5 + 25])}"


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(reply=scripted_reply) as loopback:
        yield loopback


def run_inspect(server: LoopbackServer, folder: Path, *arguments: str) -> str:
    """Run the command line in a folder of its own: a folder with our sources would hide the installed package."""
    variables = {
        "LOOP_BASE_URL": server.url,
        "LOOP_API_KEY": "not-a-key",
        "INSPECT_DISPLAY": "plain",
        "PYTHONPATH": "",
    }
    command = [BIN / "inspect", *arguments]
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def evaluate_in_inspect(server: LoopbackServer, folder: Path, task: str, *options: str) -> Any:
    from inspect_ai.log import read_eval_log

    model = ("--model", "openai-api/loop/demo", "--log-dir", str(folder / "logs"))
    folder.mkdir(exist_ok=True)
    run_inspect(server, folder, "eval", task, *model, *options)
    return read_eval_log(
        str(max((folder / "logs").iterdir(), key=lambda path: path.stat().st_mtime_ns))
    )


def h2htalk_in(folder: Path, *words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run our own command line, and want one of the exit codes; returns its messages on one line."""
    command = [BIN / "h2htalk", *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in codes, done.stdout + done.stderr
    return " ".join(done.stderr.split())


def path_of(log: Any) -> str:
    return str(log.location.removeprefix("file://"))


def metrics_of(log: Any, scorer: str = "companion") -> dict[str, float]:
    (overall,) = (score for score in log.results.scores if score.name == scorer)
    return {name: metric.value for name, metric in overall.metrics.items()}


def rows_of(run: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in h2htalk.load_run(run).scores().to_pylist()}


@pytest.fixture(scope="module", params=["en", "zh"])
def log_and_run(
    request: pytest.FixtureRequest, server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The log of Inspect and the run of ours, of one model on one language of `mini`."""
    language = request.param
    folder = tmp_path_factory.mktemp(request.param)
    embedder = "minilm" if language == "en" else "none"
    task_arguments = (
        "--max-retries",
        "0",
        "-T",
        f"language={language}",
        "-T",
        f"embedder={embedder}",
    )
    log = evaluate_in_inspect(server, folder, "h2htalk/mini", *task_arguments)
    spec: dict[str, Any] = {"language": language, "embedder": embedder}
    model = server.spec.replace("loopback@", "demo@")
    summary = h2htalk.evaluate(
        h2htalk.EvaluateSpec(model=model, split="mini", out=str(folder / "run"), **spec)
    )
    return log, folder, summary, embedder


def test_every_item_has_the_same_values_and_the_same_items_are_unscored(log_and_run: Any) -> None:
    log, folder, _, embedder = log_and_run
    rows = rows_of(folder / "run")
    columns = [*LEXICAL, "lexical", *(("ss", "s") if embedder == "minilm" else ())]
    assert len(log.samples) == len(rows) == 176
    scored = 0
    for sample in log.samples:
        value = sample.scores["companion"].value
        row = rows[sample.id]
        if (
            row["unscored"] or sample.output.completion == CUT
        ):  # we score what was said before the cut
            assert math.isnan(value)
            continue
        scored += 1
        assert {name: value[name] for name in columns} == pytest.approx(
            {name: row[name] for name in columns}, abs=1e-9
        )
        assert value["compliance"] == float(not row["violations"])
    assert 150 < scored < 176
    assert {sample.scores["companion"].reason for sample in log.samples} == {
        None,
        "failed_call",
        "cut_at_max_tokens",
    }


def test_the_weights_of_table_1_are_a_metric(log_and_run: Any) -> None:
    log, _, summary, embedder = log_and_run
    row = summary.rows.s if embedder == "minilm" else summary.rows.lexical
    figures_found = metrics_of(log)
    name = "s" if embedder == "minilm" else "lexical"
    # Over the same items, of which ours has also those that were cut.
    assert 100 * figures_found[f"overall_{name}"] == pytest.approx(row["overall"].value, abs=2)
    cut = {sample.id for sample in log.samples if sample.output.completion == CUT}
    scored = {
        sample.id: sample.scores["companion"].value
        for sample in log.samples
        if sample.scores["companion"].reason is None
    }
    harness_split = HarnessSplit("mini", language=log.samples[0].metadata["language"])
    figures = harness_split.figures({item: value[name] for item, value in scored.items()})
    assert cut
    assert figures_found[f"overall_{name}"] == pytest.approx(figures["overall"])
    assert figures_found[f"items_mean_{name}"] == pytest.approx(figures["items_mean"])
    assert log.results.headline.metric == f"overall_{name}"


def test_a_log_becomes_a_run_with_the_same_scores(log_and_run: Any) -> None:
    log, folder, summary, _ = log_and_run
    h2htalk_in(
        folder, "import", "inspect", path_of(log), "--out", "imported", codes=(3,)
    )  # some items failed
    ours = rows_of(folder / "run")
    theirs = rows_of(folder / "imported")
    for row in (*ours.values(), *theirs.values()):
        row["unscored"] = row["unscored"] is not None  # other words for the same failure
    assert theirs == ours
    imported = h2htalk.load_run(folder / "imported")
    assert imported.summary.signature.fingerprint == summary.signature.fingerprint
    answers = [answer for answer in imported.answers.values() if isinstance(answer, Response)]
    assert {answer.usage.input_tokens for answer in answers} == {120}
    assert all(answer.seconds for answer in answers)


def test_a_log_of_ours_is_scored_again_with_another_embedder(
    log_and_run: Any, server: LoopbackServer
) -> None:
    from inspect_ai.log import read_eval_log

    log, folder, _, embedder = log_and_run
    other_embedder = "none" if embedder == "minilm" else "minilm"
    output = str(folder / "again.eval")
    scorer = (
        "--scorer",
        "h2htalk/companion",
        "-S",
        f"embedder={other_embedder}",
        "--action",
        "append",
        "--output-file",
        output,
    )
    run_inspect(server, folder, "score", path_of(log), *scorer)
    rescored = read_eval_log(output)
    names = set(chain.from_iterable(sample.scores for sample in rescored.samples))
    assert names == {"companion", "companion-1"} or names == {"companion", "companion1"}
    for sample in rescored.samples:
        first, second = sample.scores.values()
        assert first.reason == second.reason
        if first.reason is None:
            assert {name: second.value[name] for name in LEXICAL} == {
                name: first.value[name] for name in LEXICAL
            }
            assert other_embedder == "none" or math.isnan(
                second.value["s"]
            )  # MiniLM is for English


def test_a_log_of_others_is_matched_by_what_it_asked(
    log_and_run: Any, server: LoopbackServer
) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    log, folder, _, _ = log_and_run
    theirs = read_eval_log(log.location)
    theirs.samples = theirs.samples[:12]
    ids_by_number = {number: sample.id for number, sample in enumerate(theirs.samples, 1)}
    values = {number: sample.scores["companion"] for number, sample in enumerate(theirs.samples, 1)}
    for number, sample in enumerate(theirs.samples, 1):
        sample.id, sample.metadata, sample.scores = number, {}, {}
    for messages in (
        theirs.samples[3].input,
        theirs.samples[3].messages[: len(theirs.samples[3].input)],
    ):
        messages[-1].content = "Something else"
    theirs.eval.dataset.sample_ids = [*ids_by_number]
    theirs.eval.metadata = theirs.results = None
    theirs.eval.scorers = theirs.eval.metrics = None
    write_eval_log(theirs, str(folder / "theirs.eval"))
    output = str(folder / "scored.eval")
    scorer = ("--scorer", "h2htalk/companion", "--action", "append", "--output-file", output)
    run_inspect(server, folder, "score", str(folder / "theirs.eval"), *scorer)
    for sample in read_eval_log(output).samples:
        score = sample.scores["companion"]
        if sample.id == 4:
            assert score.reason == "unknown_item"
        elif score.reason != "unknown_item":
            assert score.metadata["item"] == ids_by_number[sample.id]
            assert score.reason == values[sample.id].reason
            if score.reason is None:
                assert score.value["lexical"] == values[sample.id].value["lexical"]
    assert "only logs of h2htalk/mini" in h2htalk_in(
        folder, "import", "inspect", output, "--out", "refused", codes=(2,)
    )


STUDIES = {
    "high_risk": ("sap", "high_risk", "sap"),
    "instructions": ("instructions", "instructions", "full"),
    "arcs": ("memory", "arcs", "whole"),
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("task", STUDIES)
def test_cases_have_the_figures_of_a_study(
    task: str, language: str, server: LoopbackServer, tmp_path: Path
) -> None:
    name, split, arm = STUDIES[task]
    judge = server.spec.replace("loopback@", "judge@")
    task_arguments = ("-T", f"language={language}", "-T", "limit=4", "--max-retries", "0")
    grader = ("--model-role", "grader=openai-api/loop/judge")
    log = evaluate_in_inspect(server, tmp_path, f"h2htalk/{task}", *task_arguments, *grader)
    # The study of SAP has two kinds of cases, of which the task asks one.
    how: Any = {
        "language": language,
        "limit": 60 if name == "sap" else 4,
        "embedder": "none",
        "attempts": 1,
    }
    ask = h2htalk.EvaluateSpec(model=server.spec, split=split, out=str(tmp_path / "study"), **how)
    arms = () if name == "instructions" else (arm,)
    spec = h2htalk.StudySpec(study=name, arms=arms, judge=judge, ask=ask)  # type: ignore[arg-type]
    result = h2htalk.run_study(spec)
    ids = {sample.id for sample in log.samples}  # what was said before a call failed counts too
    assert ids
    ours = {
        (row.item, row.figure, row.place): (row.value, row.by)
        for row in result.observations
        if row.item in ids and is_answered(row.figure) and row.arm not in TRIVIAL_ARMS
    }
    theirs = {
        (row["item"], row["figure"], row["place"]): (row["value"], row["by"])
        for sample in log.samples
        if sample.scores["points"].metadata
        for row in sample.scores["points"].metadata["observations"]
    }
    assert len(theirs) > 15
    assert {key: ours[key] for key in theirs} == theirs
    complete = next(
        sample
        for sample in log.samples
        if sample.error is None and sample.scores["points"].explanation
    )
    assert "because of" in complete.scores["points"].explanation
    assert log.eval.metadata["canary"].startswith(split)
    turns = [message.role for message in complete.messages if message.role != "system"]
    assert turns == ["user", "assistant"] * (len(turns) // 2)


def test_without_a_grader_points_that_need_one_are_counted(
    server: LoopbackServer, tmp_path: Path
) -> None:
    log = evaluate_in_inspect(
        server, tmp_path, "h2htalk/look_alike", "-T", "limit=2", "--max-retries", "0"
    )
    assert metrics_of(log, "points")["points_unscored"] > 0
    assert "no judge and no people" in log.samples[0].scores["points"].explanation


def test_a_judged_run_opens_in_inspect_and_comes_back(
    log_and_run: Any, server: LoopbackServer
) -> None:
    from inspect_ai.log import read_eval_log

    _, folder, _, embedder = log_and_run
    judge = server.spec.replace("loopback@", "judge@")
    h2htalk.judge_run(h2htalk.JudgeSpec(run=str(folder / "run"), judges=(judge,)))
    file = folder / "run.eval"
    h2htalk_in(folder, "results", "export", "run", "--to", "inspect", "--out", file)
    log = read_eval_log(str(file))
    judged = [sample for sample in log.samples if "judge" in (sample.scores or {})]
    assert len(log.samples) == 176
    assert len(judged) > 40
    assert "because of" in judged[0].scores["judge"].explanation
    assert log.eval.metadata["canary"].startswith("mini")
    name = "s" if embedder == "minilm" else "lexical"
    row = h2htalk.load_run(folder / "run").summary.rows.s if embedder == "minilm" else None
    if row is not None:
        assert 100 * metrics_of(log)[f"overall_{name}"] == pytest.approx(row["overall"].value)
    rescored = folder / "rescored.eval"  # Inspect knows no provider of our models' names
    scorer = (
        "--scorer",
        "h2htalk/companion",
        "-S",
        f"embedder={embedder}",
        "--action",
        "overwrite",
    )
    run_inspect(
        server,
        folder,
        "score",
        str(file),
        *scorer,
        "--model",
        "none",
        "--output-file",
        str(rescored),
    )
    scores = {
        sample.id: sample.scores["companion"] for sample in read_eval_log(str(rescored)).samples
    }
    assert {score.reason for score in scores.values()} <= {None, "failed_call", "cut_at_max_tokens"}
    for sample in log.samples:
        if scores[sample.id].reason is None:
            assert scores[sample.id].value["lexical"] == pytest.approx(
                sample.scores["companion"].value["lexical"]
            )
    h2htalk_in(folder, "import", "inspect", file, "--out", "back", codes=(3,))
    subjects = [
        h2htalk.load_run(folder / name).summary.signature.subject for name in ("run", "back")
    ]
    assert {
        len({subject[name] for subject in subjects})
        for name in ("temperature", "top_p", "seed", "max_tokens")
    } == {1}
    values = [*LEXICAL, "ss", "s", "violations"]
    both_rows = (rows_of(folder / name) for name in ("run", "back"))
    ours, theirs = (
        {name: [row[key] for key in values] for name, row in rows.items()} for rows in both_rows
    )
    assert ours == theirs
    run_inspect(server, folder, "view", "bundle", "--log-dir", "logs", "--output-dir", "site")
    assert (folder / "site" / "index.html").is_file()


CHEAT = """
from inspect_ai.solver import solver

@solver
def cheat(tokens=None):
    async def solve(state, generate):
        if tokens is None:
            state.messages[-1].content = "Say hello."
        return await generate(state, max_tokens=tokens or state.metadata["max_tokens"])
    return solve
"""
SMALL = ("-T", "language=en", "-T", "limit=11")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--solver", "cheat.py"), "its messages are not those of h2htalk"),
        (("--solver", "cheat.py", "-S", "tokens=4000"), "was asked with max_tokens 4000"),
        (("--system-message", "You are a parrot."), "its messages are not those of h2htalk"),
    ],
)
def test_a_log_that_asked_something_else_is_refused(
    options: tuple[str, ...], message: str, server: LoopbackServer, tmp_path: Path
) -> None:
    from inspect_ai.log import read_eval_log

    (tmp_path / "cheat.py").write_text(CHEAT)
    log = evaluate_in_inspect(server, tmp_path, "h2htalk/mini", *SMALL, *options)
    assert message in h2htalk_in(
        tmp_path, "import", "inspect", path_of(log), "--out", "run", codes=(2,)
    )
    assert not (tmp_path / "run").exists()
    if options == ("--solver", "cheat.py"):
        assert {sample.scores["companion"].reason for sample in log.samples} == {"changed_item"}
        scorer = (
            "--scorer",
            "h2htalk/companion",
            "--action",
            "overwrite",
            "--output-file",
            str(tmp_path / "s.eval"),
        )
        run_inspect(server, tmp_path, "score", path_of(log), *scorer)
        rescored = read_eval_log(str(tmp_path / "s.eval")).samples
        assert {sample.scores["companion"].reason for sample in rescored} == {"changed_item"}


def test_the_signature_of_an_import_has_what_was_sent(
    server: LoopbackServer, tmp_path: Path
) -> None:
    options = (
        "--top-p",
        "0.1",
        "--seed",
        "9",
        "--stop-seqs",
        "I",
        "--frequency-penalty",
        "1",
        "--max-tokens",
        "500",
    )
    subjects = []
    for name, extra_options in (("plain", ()), ("sampled", options)):
        log = evaluate_in_inspect(
            server, tmp_path, "h2htalk/mini", *SMALL, "--max-retries", "0", *extra_options
        )
        h2htalk_in(tmp_path, "import", "inspect", path_of(log), "--out", name, codes=(0, 3))
        subjects.append(h2htalk.load_run(tmp_path / name).summary.signature.subject)
    plain, sampled = subjects
    assert (plain["temperature"], plain["top_p"], plain["seed"]) == (
        "0",
        "model's own",
        "model's own",
    )
    assert {"stop_seqs", "max_retries"}.isdisjoint(plain)
    names = ("temperature", "top_p", "seed", "stop_seqs", "frequency_penalty", "max_tokens")
    assert [sampled[name] for name in names] == ["0", "0.1", "9", "['I']", "1", "500"]


def test_a_filtered_prompt_is_an_empty_reply_as_in_our_own_run(tmp_path: Path) -> None:
    filtered = HarnessSplit("mini", "en", limit=11).items[3]
    prompt = filtered.messages[-1]["content"]

    def answer(request: dict[str, Any], count: int) -> str | Answer:
        error = {"error": {"message": "The prompt was filtered.", "code": "content_filter"}}
        return Answer(error, 400) if request["messages"][-1]["content"] == prompt else "I hear you."

    with LoopbackServer(reply=answer) as server:
        log = evaluate_in_inspect(server, tmp_path, "h2htalk/mini", *SMALL, "--max-retries", "0")
        spec: dict[str, Any] = {"language": "en", "limit": 11, "embedder": "none"}
        h2htalk.evaluate(
            h2htalk.EvaluateSpec(model=server.spec, split="mini", out=tmp_path / "run", **spec)
        )
    h2htalk_in(tmp_path, "import", "inspect", path_of(log), "--out", "imported")
    score = next(sample for sample in log.samples if sample.id == filtered.id).scores["companion"]
    assert score.reason is None
    lexical = [rows_of(tmp_path / name)[filtered.id]["lexical"] for name in ("run", "imported")]
    assert [score.value["lexical"], *lexical] == [0.0, 0.0, 0.0]


def test_samples_that_are_one_item_count_once() -> None:
    from inspect_ai.scorer import SampleScore, Score

    from h2htalk.integrations.inspect.scorers import overall

    def score(item: str, value: float) -> SampleScore:
        about = {"item": item, "subtask": "dialogue_base"}
        return SampleScore(
            score=Score(value={"lexical": value}, metadata=about), sample_id=f"{item}-{value}"
        )

    figures_found: Any = overall()([score("a", 0.2), score("a", 0.4), score("b", 0.9)])  # type: ignore[call-arg,arg-type]
    assert figures_found["items_mean_lexical"] == pytest.approx(0.6)


def test_an_export_has_the_columns_of_metrics_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of its own, as `run_inspect` runs: a folder with our sources would hide the installed package."""
    from inspect_ai.log import read_eval_log

    info = tmp_path / "site" / "warm_words-0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "warm_words.py").write_text(
        "def warmth(pairs, metrics):\n    return [0.5 for _ in pairs]\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: warm-words\nVersion: 0.3.1\n")
    (info / "entry_points.txt").write_text("[h2htalk.metrics]\nwarmth = warm_words:warmth\n")
    evaluation = [
        "evaluate",
        "baseline:constant",
        "--split",
        "mini",
        "--limit",
        "11",
        "--embedder",
        "none",
        "--out",
        "run",
    ]
    monkeypatch.setenv("PYTHONPATH", str(info.parent))
    for words in (
        evaluation,
        ["results", "export", "run", "--to", "inspect", "--out", "run.eval"],
    ):
        h2htalk_in(tmp_path, *words)
    samples = read_eval_log(str(tmp_path / "run.eval")).samples or []
    assert {sample.scores["companion"].value["warmth"] for sample in samples if sample.scores} == {
        0.5
    }  # type: ignore[index,call-overload]


def test_an_unknown_language_is_named(server: LoopbackServer, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"no language 'fr'; choose from en, zh"):
        evaluate_in_inspect(server, tmp_path, "h2htalk/mini", "-T", "language=fr")


# --- An exported study in Inspect's own viewer, as a folder on any static host


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("view")
    with LoopbackServer(reply=scripted_reply) as server:
        model, judge = (server.spec.replace("loopback@", f"{name}@") for name in ("demo", "judge"))
        how: dict[str, Any] = {
            "language": "en",
            "limit": 6,
            "embedder": "none",
            "out": str(folder / "study"),
        }
        ask = h2htalk.EvaluateSpec(model=model, split="high_risk", **how)
        result = h2htalk.run_study(
            h2htalk.StudySpec(study="sap", ask=ask, arms=("sap", "none"), judge=judge)
        )
        h2htalk_in(
            folder, "results", "export", "study", "--to", "inspect", "--out", "logs/study.eval"
        )
        run_inspect(server, folder, "view", "bundle", "--log-dir", "logs", "--output-dir", "site")
    return folder, result


@pytest.fixture
def site(study: Any) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(study[0] / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_transcripts_scores_and_the_judges_evidence_are_there(
    study: Any, site: str, browser: Any
) -> None:
    _, result = study
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    alarms = []
    page.on("pageerror", lambda error: alarms.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(site) else alarms.append(request.url),
    )
    page.goto(site)
    reply_found = next(
        reply
        for reply in result.replies
        if any("because of" in point.evidence for point in reply.points)
    )
    page.get_by_text(f"{reply_found.reply.arm}/{reply_found.case.id}", exact=True).first.click()
    page.get_by_role("tab", name="Messages").first.click()
    page.get_by_text(reply_found.reply.said[0].content[:40]).first.wait_for()
    page.get_by_text((reply_found.reply.text or "")[:40]).first.wait_for()
    page.get_by_role("tab", name="Scoring").first.click()
    page.get_by_text(reply_found.points[0].point.text, exact=False).first.wait_for()
    page_text = page.inner_text("body")
    for point in reply_found.points:
        assert point.point.text in page_text
    assert (
        f"(judge: {next(point.evidence for point in reply_found.points if point.evidence)})"
        in page_text
    )
    assert "points_unscored" in page_text
    page.goto(f"{site}#/tasks/study.eval/info")
    page.get_by_text(load_split("high_risk").canary).first.wait_for()
    assert alarms == []


def test_a_log_of_a_run_of_a_model_file_holds_no_path(tmp_path: Path) -> None:
    """A server that names its model by a path, as llama.cpp does: the exported log has its last part."""
    path = "/home/ada/models/quiet-7B.gguf"
    reply = Answer(completion("I hear you. What would help?") | {"model": path})
    with LoopbackServer(reply=lambda body, count: reply) as server:
        spec = h2htalk.EvaluateSpec(
            model=f"server:{path}@{server.url}",
            split="mini",
            out=str(tmp_path / "run"),
            language="en",
            limit=22,
            embedder="none",
            baselines=False,
        )
        h2htalk.evaluate(spec)
    h2htalk_in(tmp_path, "results", "export", "run", "--to", "inspect", "--out", "log.json")
    text = (tmp_path / "log.json").read_text(encoding="utf-8")
    assert "quiet-7B.gguf" in text
    assert "/home/ada" not in text

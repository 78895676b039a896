"""Files of other tools: logs of other harnesses (real ones in `fixtures/`), responses, the authors' released files."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.imports.harness_log import read_harness_log
from h2htalk.data.imports.log_records import HarnessLog, ItemInput
from h2htalk.data.imports.response_files import (
    AUTHORS_FILES,
    import_authors,
    read_foreign_responses,
)
from h2htalk.data.imports.zip_members import ZSTD, read_members
from h2htalk.data.responses import FailedResponse, Failure, Response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError

FIXTURES = Path(__file__).parent / "fixtures"
LM_EVAL, FILTERS = (
    next(FIXTURES.glob(f"samples_{name}_2*")) for name in ("companion", "companion_filters")
)
FIRST = "mini-en-dialogue-base-01"


def values_of(log: HarnessLog, metric: str) -> dict[tuple[str, int], float | str]:
    return {(record.item, record.epoch): record.value(metric) for record in log.records}


def test_inspect_has_failed_unscored_and_scored_items() -> None:
    log = read_harness_log(FIXTURES / "once.eval")
    assert (log.harness, log.model) == ("Inspect 0.3.285", "openai-api/loopback/demo")
    assert (log.task, log.notes) == ("companion", ())
    found = values_of(log, "text_scores/lexical")
    assert found[FIRST, 1] == pytest.approx(0.3158422857496322, abs=1e-15)
    # A value of a scorer with several values is NaN as a whole, with its reason.
    assert [found[f"mini-en-dialogue-{name}-01", 1] for name in ("emotion", "schedule")] == [
        "error",
        "no_response",
    ]
    assert values_of(log, "asks_back")[FIRST, 1] == 1.0
    with pytest.raises(
        ConfigError, match="with --metric: choose from 'asks_back', 'text_scores/lexical'"
    ):
        log.metric(None)
    with pytest.raises(ConfigError, match="did you mean 'asks_back'"):
        log.metric("ask_back")


def test_inspect_epochs_positions_edits_and_runs_that_did_not_end() -> None:
    logs = {
        name: read_harness_log(FIXTURES / f"{name}.eval")
        for name in ("epochs", "edited", "killed", "stopped")
    }
    assert len(values_of(logs["epochs"], "asks_back")) == 4
    log = read_harness_log(FIXTURES / "positions.json")
    assert [(record.item, record.own_id) for record in log.records] == [("1", False)]
    assert log.metric(None) == "asks_back"
    assert logs["edited"].notes == ("1 score was edited by hand",)
    assert logs["killed"].notes == ("the log is partial: status started, 1 of 3 samples",)
    assert [record.failure for record in logs["killed"].records] == [
        None,
        "not in the log",
        "not in the log",
    ]
    assert logs["stopped"].notes == ("the log is partial: status error, 1 of 1 samples",)
    with pytest.raises(DataError, match="no item has a score"):
        logs["stopped"].metric("asks_back")
    with pytest.raises(DataError, match="marked as invalid"):
        read_harness_log(FIXTURES / "invalid.eval")


def test_lm_eval_samples_and_filters(tmp_path: Path) -> None:
    log = read_harness_log(LM_EVAL)
    assert (log.harness, log.model, log.task, log.notes) == (
        "lm-eval 0.4.13",
        "demo",
        "companion",
        (),
    )
    assert values_of(log, "rouge_l")["mini-en-dialogue-schedule-01", 0] == "NaN"
    assert values_of(log, "lexical")[FIRST, 0] == pytest.approx(0.3158422857496322, abs=1e-15)
    assert values_of(read_harness_log(FILTERS), "lexical,last_sentence").keys() == {(FIRST, 0)}
    alone = read_harness_log(Path(shutil.copy(LM_EVAL, tmp_path)))
    assert "no results_2" in alone.notes[0]


def inspect_log(path: Path, *values: Any) -> Path:
    """A log of Inspect with one scorer's values."""
    samples = [
        {
            "id": f"item-{place}",
            "epoch": 1,
            "input": "Hello",
            "target": "",
            "output": {"completion": "Hi."},
            "scores": {"match": {"value": value}},
        }
        for place, value in enumerate(values)
    ]
    about = {"model": "demo", "task": "greet", "dataset": {}, "config": {}}
    path.write_text(
        json.dumps({"version": 2, "status": "success", "eval": about, "samples": samples})
    )
    return path


def test_texts_of_inspect_are_the_numbers_that_inspect_counts(tmp_path: Path) -> None:
    """Values that are texts ("0.5", "yes") left a log without a score."""
    texts = ["0.5", "1", "yes", "no", "True", "FALSE", "C", "P", "I", "N", " 2.5 ", "1e-1"]
    log = read_harness_log(inspect_log(tmp_path / "texts.json", *texts))
    numbers = [0.5, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.5, 0.0, 0.0, 2.5, 0.1]
    assert list(values_of(log, "match").values()) == numbers
    assert log.metric(None) == "match"


def test_the_one_score_of_an_early_log_of_inspect_is_read(tmp_path: Path) -> None:
    """Logs of early 2024 have `score` in place of `scores`, and were left without a score."""
    path = inspect_log(tmp_path / "early.json", "C", "I")
    log = json.loads(path.read_text())
    for sample in log["samples"]:
        (sample["score"],) = sample.pop("scores").values()
    path.write_text(json.dumps(log))
    assert list(values_of(read_harness_log(path), "score").values()) == [1.0, 0.0]


# Epochs, the reducers of the settings and those of the results, and what is read.
REDUCERS = """
3  max             -    > max
3  pass_at_2,mode  -    > pass_at_2, mode
3  max,mean        -    >
3  -               max  > max
3  -               -    >
1  max             -    >
1  at_least_1      -    > at_least_1
"""


@pytest.mark.parametrize("line", REDUCERS.strip().splitlines())
def test_the_reducer_of_epochs_is_read(tmp_path: Path, line: str) -> None:
    """Nobody was told that a log's own figures were no means."""
    settings, _, reducer = line.partition(">")
    epochs, names, scored = settings.split()
    path = inspect_log(tmp_path / "log.json", 1)
    log = json.loads(path.read_text())
    config = log["eval"]["config"]
    config["epochs"] = int(epochs)
    if names != "-":
        config["epochs_reducer"] = names.split(",")
    score = {"name": "match", "reducer": None if scored == "-" else scored}
    log["results"] = {"scores": [score]}
    path.write_text(json.dumps(log))
    read = read_harness_log(path)
    assert read.reducer == reducer.strip()
    named = [note for note in read.notes if "its own figures" in note]
    assert len(named) == bool(read.reducer)


def test_texts_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    log = read_harness_log(
        inspect_log(tmp_path / "words.json", "good", "poor", "good", "inf", {"tone": "warm"})
    )
    assert next(iter(values_of(log, "match").values())) == "not a number: 'good'"
    with pytest.raises(
        DataError,
        match=r"no item has a score; these values are not numbers: 'good' .match., 'poor' ",
    ):
        log.metric(None)
    mixed = read_harness_log(inspect_log(tmp_path / "mixed.json", "good", "0.25"))
    assert list(values_of(mixed, "match").values()) == ["not a number: 'good'", 0.25]


def lm_eval_line(item: int, prompt: Any, **more: Any) -> dict[str, Any]:
    """A sample as lm-eval 0.4.0 to 0.4.4 of 2024 writes it: neither `metrics` nor `filter`."""
    line = {
        "doc_id": item,
        "doc": {"id": f"item-{item}", "question": "Hello"},
        "target": "Hi.",
        "arguments": prompt,
        "resps": [["Hi."]],
        "filtered_resps": ["Hi."],
        "doc_hash": "0" * 64,
        "prompt_hash": "0" * 64,
        "target_hash": "0" * 64,
    }
    return line | more


def test_lm_eval_of_2024_names_no_metrics(tmp_path: Path) -> None:
    """Its lines have no key `metrics`, and ended in a message with a KeyError."""
    request = {"gen_args_0": {"arg_0": "Hello", "arg_1": {"until": ["\n"]}}}
    lines = [lm_eval_line(n, request, exact_match=n / 4, rouge=0.5) for n in range(3)]
    path = tmp_path / "samples_companion_2024-07-01T10-00-00.jsonl"
    write_jsonl(path, lines)
    log = read_harness_log(path)
    assert values_of(log, "exact_match") == {
        ("item-0", 0): 0.0,
        ("item-1", 0): 0.25,
        ("item-2", 0): 0.5,
    }
    assert log.records[0].input == ItemInput.of([("user", "Hello")], "Hi.")
    with pytest.raises(ConfigError, match="choose from 'exact_match', 'rouge'"):
        log.metric(None)


def test_lm_eval_0_4_2_writes_one_list_and_several_filters_are_numbered(tmp_path: Path) -> None:
    request = [["Hello", {"until": ["\n"]}]]
    lines = [lm_eval_line(n, request, exact_match=score) for score in (1.0, 0.0) for n in range(2)]
    path = tmp_path / "pretrained__demo_companion.jsonl"
    path.write_text(json.dumps(lines, indent=2))
    log = read_harness_log(path)
    assert values_of(log, "exact_match,filter 1") == {("item-0", 0): 1.0, ("item-1", 0): 1.0}
    assert values_of(log, "exact_match,filter 2") == {("item-0", 0): 0.0, ("item-1", 0): 0.0}
    path.write_text("[1, 2]")
    with pytest.raises(DataError, match="a sample is no JSON object"):
        read_harness_log(path)


def test_a_reply_without_content_is_an_empty_answer_of_lm_eval(tmp_path: Path) -> None:
    """It was the answer *None*, and no note said that an empty answer has a score."""
    path = tmp_path / "samples_companion_2026-07-01T10-00-00.jsonl"
    prompt = [["Hello"]]
    withheld = lm_eval_line(0, prompt, exact_match=0.0, filtered_resps=[None])
    spoken = lm_eval_line(1, prompt, exact_match=0.0, filtered_resps=["None"])
    write_jsonl(path, [withheld, spoken])
    log = read_harness_log(path)
    first, second = log.records
    assert first.answer == ""
    assert second.answer == "None"


def test_a_log_of_another_form_is_refused_without_the_name_of_an_exception(tmp_path: Path) -> None:
    path = tmp_path / "samples_x_1.jsonl"
    for damage in (
        {"metrics": 5},
        {"arguments": None},
        {"doc": 7},
        {"filtered_resps": {}},
        {"arguments": {}},
    ):
        write_jsonl(path, [lm_eval_line(0, [["Hello"]], exact_match=1.0) | damage])
        with contextlib.suppress(DataError):
            read_harness_log(path)
            continue
        with pytest.raises(DataError, match="is not in the form that its name promises") as refused:
            read_harness_log(path)
        assert "Error" not in str(refused.value)
        assert "\n" not in str(refused.value)


def opencompass(folder: Path, details: Any = None, replicas: int = 2) -> Path:
    """Two items in the documented form, in one or more replicas."""
    items = {
        str(place): {
            "origin_prompt": [
                {"role": "SYSTEM", "prompt": "s"},
                {"role": "HUMAN", "prompt": f"Question {place % 2}"},
            ],
            "prediction": "" if place == 3 else f"answer {place}",
            "gold": f"Reference {place % 2}",
        }
        for place in range(2 * replicas)
    }
    scores = [
        {"example_abbr": f"set_{j}", "exact": [j / 2 + k / 4 for k in range(replicas)]}
        for j in range(2)
    ]
    for kind, content in (
        ("predictions", items),
        ("results", {"exact": 50.0, "details": details or scores}),
    ):
        (folder / kind / "demo").mkdir(parents=True)
        (folder / kind / "demo" / "set.json").write_text(json.dumps(content))
    return folder


def test_opencompass_replicas_are_epochs(tmp_path: Path) -> None:
    log = read_harness_log(opencompass(tmp_path / "20261122"))
    scores = {("set_0", 0): 0.0, ("set_1", 0): 0.5, ("set_0", 1): 0.25, ("set_1", 1): 0.75}
    assert values_of(log, log.metric(None)) == scores
    assert log.records[1].input == ItemInput.of(
        [("system", "s"), ("user", "Question 1")], "Reference 1"
    )
    assert read_harness_log(tmp_path / "20261122" / "predictions" / "demo").records == log.records
    (tmp_path / "20261122" / "predictions" / "demo" / "tmp_other.jsonl").write_text("")
    assert "did not end" in read_harness_log(tmp_path / "20261122").notes[0]
    with pytest.raises(DataError, match="wrote no details of items"):
        read_harness_log(opencompass(tmp_path / "gen", details={"type": "GEN", "0": {}}))
    (opencompass(tmp_path / "two") / "predictions" / "other").mkdir()
    with pytest.raises(DataError, match="name one model, as predictions/MODEL: demo, other"):
        read_harness_log(tmp_path / "two")


def eee_row(**changed: Any) -> str:
    row = {
        "sample_id": "q-1",
        "model_id": "lab/m",
        "evaluation_name": "exact",
        "evaluation": {"score": 1.0},
    }
    return json.dumps({**row, "input": {"raw": "Q", "reference": ["R"]}, **changed}) + "\n"


def test_every_eval_ever_and_score_tables(tmp_path: Path) -> None:
    path = tmp_path / "x_samples.jsonl"
    fluent = eee_row(evaluation_name="fluent", evaluation={"score": 0.5})
    path.write_text(eee_row() + fluent + eee_row(sample_id="7", error="timeout"))
    log = read_harness_log(path)
    assert values_of(log, "fluent") == {("q-1", 1): 0.5, ("7", 1): "error"}
    assert [record.own_id for record in log.records] == [True, False]
    path = tmp_path / "scores.csv"
    path.write_text("\ufeffid,sample,score\na,0,1\na,1,0.5\nb,0,\nb,1,nan\n", encoding="utf-8")
    scores = {("a", 0): 1.0, ("a", 1): 0.5, ("b", 0): "no score", ("b", 1): "NaN"}
    assert values_of(read_harness_log(path), "score") == scores


def bomb(path: Path, claimed: int | None = None) -> None:
    """A member of 1 GB in a few kB, which may claim to be small."""
    packed = pa.compress(bytes(2**28), "zstd", asbytes=True) * 4
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", packed)
        info = archive.getinfo("header.json")
        info.compress_type, info.file_size = ZSTD, claimed or 2**30


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("bomb.eval", bomb, "larger than 64 MiB"),
        ("lying.eval", lambda path: bomb(path, 100), "is not what the archive says"),
        ("other.json", text('{"a": 1}'), "not in the form that its name promises .without 'eval'"),
        ("other.jsonl", text('{"a": 1}\n'), "neither a run folder nor an Inspect log"),
        (
            "wrong.jsonl",
            text('{"doc_id": 0, "metrics": 5}\n'),
            "not in the form that its name promises",
        ),
        ("twice.csv", text("id,score\na,1\na,2\n"), "'a' has two answers with the number 0"),
        (
            "binary.csv",
            lambda path: path.write_bytes(b"id,score\n\xff\xfe"),
            "cannot be read as CSV in UTF-8",
        ),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, name: str, write: Callable[[Path], None], message: str
) -> None:
    write(tmp_path / name)
    with pytest.raises(DataError, match=f"{name}.*({message})"):
        read_harness_log(tmp_path / name)


TEXT = b"A line of a log.\n" * 400


def test_a_damaged_file_is_read_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", TEXT)
    whole = path.read_bytes()
    for seed in range(60):
        chance = random.Random(seed)
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
        found: list[bytes] = []
        with contextlib.suppress(DataError):  # any other error is a traceback
            found = [content for _, content in read_members(path, lambda names: names, 1 << 20)]
        assert found in ([TEXT], []), seed


IDS = [f"s-{number}" for number in range(12)]


def write(folder: Path, *records: dict[str, Any]) -> Path:
    write_jsonl(folder / "answers.jsonl", records)
    return folder / "answers.jsonl"


def test_a_response_key_or_a_text_key_both_do(tmp_path: Path) -> None:
    """Null fields, and fields that are not scored, are no hindrance, whatever their kind."""
    path = write(
        tmp_path,
        {
            "id": "s-0",
            "response": "Hi.",
            "usage": {"prompt": "12"},
            "finish_reason": None,
            "failure": None,
        },
        {"id": "s-1", "text": "Hello.", "finish_reason": 3, "seconds": "fast", "at": 1.8e12},
        {"id": "s-2", "response": "", "sample": 0, "model": "ours", "thinking": {"a": 1}},
        {"id": "s-3", "failure": {"reason": "timeout", "message": "x"}},
        {"id": "s-4", "response": "cut", "text": None, "finish_reason": "length"},
    )
    assert read_foreign_responses(path, IDS) == [
        Response("s-0", 0, "Hi."),
        Response("s-1", 0, "Hello."),
        Response("s-2", 0, ""),
        FailedResponse("s-3", 0, Failure("timeout", "x")),
        Response("s-4", 0, "cut", "length"),
    ]


def test_a_call_store_is_read_and_a_reply_wins_over_the_failure_before_it(tmp_path: Path) -> None:
    reserved = {"stage": "generate", "asked": "openai:m", "worst": "1"}
    reply = {
        "call": 1,
        "stage": "generate",
        "id": "s-0",
        "text": "Hi.",
        "more": [{"sample": 1, "text": "Ho."}],
    }
    path = write(
        tmp_path,
        {"job": "ab", "event": "planned", "stage": "generate", "asked": "openai:m", "when": 0.0},
        {"reserved": 1, "id": "s-0", "samples": [0, 1], **reserved},
        {
            "id": "s-0",
            "sample": 0,
            "failure": {"reason": "timeout", "message": "x"},
            "stage": "generate",
        },
        reply,
        {"reserved": 2, "id": "s-1", "samples": [0], **reserved},
        {"call": 2, "id": "s-1", "cost": "possibly_paid", "reason": "timeout"},
    )
    assert read_foreign_responses(path, IDS) == [
        Response("s-0", 0, "Hi."),
        Response("s-0", 1, "Ho."),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [("s-0", 2_000_000_000)],
            ":1: s-0 lacks sample 0; give every answered item the samples 0 to 0",
        ),
        (
            [("s-0", 1), ("s-0", 0), ("s-1", 0)],
            ":3: s-1 lacks sample 1; give every answered item the samples 0 to 1",
        ),
        ([("s-1", 1), ("s-0", 0), ("s-0", 1), ("s-1", 0)], ""),
    ],
)
def test_answered_items_have_equal_samples_from_0(
    tmp_path: Path, lines: list[tuple[str, int]], message: str
) -> None:
    """A sample of 2,000,000,000 was taken for as many samples an item, and the import never ended."""
    path = write(
        tmp_path, *({"id": item, "sample": sample, "response": "x"} for item, sample in lines)
    )
    with pytest.raises(DataError, match=message) if message else nullcontext():
        assert {(one.id, one.sample) for one in read_foreign_responses(path, IDS)} == set(lines)


def test_foreign_ids_are_counted_and_the_first_five_named_with_their_lines(tmp_path: Path) -> None:
    """A Cyrillic letter was printed as it was: `s-a is not in the split`, of a split with `s-a`."""
    foreign = [
        {"id": f"{other}-{number}", "response": "x"}
        for number in range(3)
        for other in ("other", "s-\u0430")
    ]
    with pytest.raises(DataError) as raised:
        read_foreign_responses(write(tmp_path, {"id": "s-0", "response": "Hi."}, *foreign), IDS)
    assert str(raised.value) == (
        f"{tmp_path / 'answers.jsonl'}: 6 ids are not in the split: id (line) 'other-0' (2), 's-\\u0430-0' (3), "
        "'other-1' (4), 's-\\u0430-1' (5), 'other-2' (6) and 1 more; name the split these responses answer"
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "s-0", "response": "again"}, ":2: a second response to s-0, sample 0"),
        ({"id": "s-1", "response": None}, ":2: response must be text, not NoneType"),
        ({"id": "s-1"}, ":2: s-1: text: is missing"),
        (
            {"id": "s-1", "response": "x", "failure": {"reason": "timeout"}},
            ":2: holds a response and a failure",
        ),
        # One of the two was scored, and nobody was told which.
        (
            {"id": "s-1", "response": "x", "text": "y"},
            ":2: holds a response and a text; keep one of them",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match="holds no response"):
        read_foreign_responses(write(tmp_path), IDS)
    with pytest.raises(DataError) as raised:
        read_foreign_responses(write(tmp_path, {"id": "s-0", "response": "Hi."}, record), IDS)
    assert str(raised.value).startswith(f"{tmp_path / 'answers.jsonl'}{message}")


def release(folder: Path, **sizes: int) -> Path:
    """The eleven files as they were released, each line saying in which file it lies."""
    for name, subtask in AUTHORS_FILES.items():
        size = sizes.get(name, SUBTASKS[subtask].count)
        write_jsonl(
            folder / f"{name}.jsonl", ({"response": f"{name} {row}"} for row in range(size))
        )
    return folder


def test_every_file_is_read_as_its_true_subtask_and_written_with_ids(tmp_path: Path) -> None:
    """Two files lie under each other's names."""
    path, number, missing = import_authors(release(tmp_path / "in"), tmp_path / "out")
    rows = [row for _, row in read_jsonl(path)]
    assert number == len(rows) == len({row["id"] for row in rows}) == 4650
    assert Counter(row["subtask"] for row in rows) == {s.name: s.count for s in SUBTASKS.values()}
    assert len(missing) == 1
    found = {row["id"]: row for row in rows}
    expected = {
        "subtask": "dialogue_schedule",
        "language": "zh",
        "reference": "itinerary_initialize 0",
    }
    assert expected.items() <= found["authors-dialogue_schedule-0001"].items()
    assert found["authors-itinerary_initialization-0001"]["reference"] == "dialogue_schedule 0"
    with pytest.raises(DataError, match=r"references\.jsonl: is there already; name a new folder"):
        import_authors(tmp_path / "in", tmp_path / "out")  # it was written over


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Sizes as released: 41 of 102 rows in one file; another file taken away."""
    release(tmp_path, recollection_initialize=41)
    (tmp_path / "dialogue_emotion.jsonl").unlink()
    path, _, missing = import_authors(tmp_path, tmp_path / "out")
    assert "dialogue_emotion" not in path.read_text()
    assert missing == [
        "DialogueEmotion: no file dialogue_emotion.jsonl",
        "RecollectionInitialization: 41 references of Table 1's 102 (recollection_initialize.jsonl)",
        "every subtask: the inputs (persona, history, memories, schedules) and ids were never released",
    ]


def test_wrong_files_of_theirs_are_named(tmp_path: Path) -> None:
    def refused(message: str, folder: Path = tmp_path) -> None:
        with pytest.raises(DataError, match=message):
            import_authors(folder, tmp_path / "out")

    refused(
        r"none of the authors' files is there, such as dialogue_base\.jsonl", tmp_path / "nowhere"
    )
    (tmp_path / "itinerary_basic.jsonl").write_text('{"response": "x"}\n{"response": 3}\n')
    refused(r"itinerary_basic\.jsonl:2: needs a response that is text")
    (tmp_path / "itinerary_basic.txt").write_text('{"response": "x"}\n')
    refused(r"both itinerary_basic\.jsonl and itinerary_basic\.txt; keep one")

"""mini through lm-eval: what it sends, and that its scores are ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from h2htalk.cli import app
from h2htalk.data.files import write_jsonl
from h2htalk.data.imports.harness_log import read_harness_log
from h2htalk.data.splits import load_split
from h2htalk.integrations.harness_split import HarnessSplit
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.live.one_model import (
    LANGUAGES,
    Ours,
    Seen,
    columns,
    items,
    key_of,
    reply,
    require_ours,
    write_private,
)

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.live


def h2htalk(*words: str) -> str:
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def lm_eval(
    server: LoopbackServer,
    out: Path,
    *words: str,
    tasks: str = "h2htalk_mini_en",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """`lm-eval run` as the documentation has it."""
    client = f"model=loopback,base_url={server.url}/chat/completions,num_concurrent=8,max_retries=1"
    command = f"run --model local-chat-completions --model_args {client} --tasks {tasks} --log_samples".split()
    folder = h2htalk("integrations", "lm-eval").strip()
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    command += ["--include_path", folder, "--output_path", str(out), *words]
    env = {**os.environ, **offline, **environment}
    return subprocess.run(
        [sys.executable, "-m", "lm_eval", *command],
        capture_output=True,
        text=True,
        env=env,
        timeout=200,
    )


@dataclass(frozen=True)
class Log:
    """What a run wrote: the samples file and its rows by item, and the figures of `results_*.json`, by task."""

    paths: dict[str, Path]
    rows: dict[str, dict[str, dict[str, Any]]]
    results: dict[str, dict[str, Any]]
    configs: dict[str, Any]

    @classmethod
    def read(cls, out: Path) -> Log:
        head = json.loads(next(out.rglob("results_*.json")).read_text(encoding="utf-8"))
        paths = {
            path.stem.removeprefix("samples_").rpartition("_")[0]: path
            for path in out.rglob("samples_*.jsonl")
        }
        lines = {
            task: path.read_text(encoding="utf-8").splitlines() for task, path in paths.items()
        }
        rows = {
            task: {row["doc"]["id"]: row for row in map(json.loads, harness_results)}
            for task, harness_results in lines.items()
        }
        return cls(paths, rows, head["results"], head["configs"])


def run_here(server: LoopbackServer, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The English task with settings of `--metadata`, in this process."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    folder = h2htalk("integrations", "lm-eval").strip()
    harness_results = simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": "loopback",
            "base_url": f"{server.url}/chat/completions",
            "num_concurrent": 8,
        },
        tasks=["h2htalk_mini_en"],
        task_manager=TaskManager(include_path=folder, metadata=dict(metadata)),
        apply_chat_template=True,
        bootstrap_iters=0,
    )
    return dict(harness_results)


@pytest.fixture(scope="module")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Seen]:
    """Both languages, as a group, with `minilm`."""
    out = tmp_path_factory.mktemp("lm-eval")
    with LoopbackServer(reply=reply) as server:
        done = lm_eval(
            server, out, "--apply_chat_template", tasks="h2htalk_mini", H2HTALK_EMBEDDER="minilm"
        )
        assert done.returncode == 0, done.stderr
        return Log.read(out), Seen.by(server)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_value_of_every_item_is_ours(
    language: str, ours: dict[str, Ours], full_run: tuple[Log, Seen]
) -> None:
    rows = full_run[0].rows[f"h2htalk_mini_{language}"]
    require_ours(ours[language], rows, language)
    assert {name for name, row in rows.items() if row["compliance"] == 0} == ours[language].broken
    further_metrics = {
        "compliance",
        "overall",
        "unscored",
        *(("overall_s",) if language == "en" else ()),
    }
    names = set(chain.from_iterable(row["metrics"] for row in rows.values()))
    assert names == {*columns(language), *further_metrics}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_server_sees_messages_and_budgets_of_our_run(
    language: str, ours: dict[str, Ours], full_run: tuple[Log, Seen]
) -> None:
    own_requests = ours[language].seen
    seen = full_run[1]
    assert own_requests.messages == {
        name: message for name, message in seen.messages.items() if name in own_requests.messages
    }
    assert own_requests.budgets == {
        name: budget for name, budget in seen.budgets.items() if name in own_requests.messages
    }
    assert len(set(own_requests.budgets.values())) == 4
    assert len(seen.messages) == sum(LANGUAGES.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_overall_has_table_1s_weights(
    language: str, ours: dict[str, Ours], full_run: tuple[Log, Seen]
) -> None:
    rows = ours[language].summary.rows
    harness_results = full_run[0].results[f"h2htalk_mini_{language}"]
    assert harness_results["overall,none"] == pytest.approx(
        (rows.lexical["overall"].value or 0) / 100, abs=1e-9
    )
    assert harness_results["lexical,none"] == pytest.approx(
        (rows.lexical["items_mean"].value or 0) / 100, abs=1e-9
    )
    assert (
        abs(harness_results["overall,none"] - harness_results["lexical,none"]) > 1e-3
    )  # they differ, so that the test can fail
    if language == "en":
        assert harness_results["overall_s,none"] == pytest.approx(
            (rows.s["overall"].value or 0) / 100, abs=1e-9
        )
    else:
        assert "overall_s,none" not in harness_results
    assert harness_results["unscored,none"] == 0
    assert "NaN" not in json.dumps(full_run[0].results)


def test_the_group_is_the_mean_of_both_languages_and_the_log_names_the_protocol(
    full_run: tuple[Log, Seen],
) -> None:
    log = full_run[0]
    tasks = [f"h2htalk_mini_{language}" for language in LANGUAGES]
    overalls = [log.results[task]["overall,none"] for task in tasks]
    assert log.results["h2htalk_mini"]["overall,none"] == pytest.approx(
        sum(overalls) / 2, abs=1e-12
    )
    protocol = HarnessSplit("mini", "en", embedder="minilm").protocol
    assert log.configs["h2htalk_mini_en"]["metadata"]["protocol"] == protocol
    canary = load_split("mini").canary
    assert log.configs["h2htalk_mini_en"]["metadata"]["canary"] == canary
    assert {row["doc"]["canary"] for rows in log.rows.values() for row in rows.values()} == {canary}


def test_compare_reads_the_log_beside_a_run(
    ours: dict[str, Ours], full_run: tuple[Log, Seen]
) -> None:
    path = full_run[0].paths["h2htalk_mini_en"]
    log = read_harness_log(path)
    assert all(record.own_id for record in log.records)
    assert all(isinstance(record.value("s"), float) for record in log.records)
    for metric in ("s", "lexical", "compliance"):
        printed = h2htalk(
            "compare", str(ours["en"].out), str(path), "--metric", metric, "--format", "json"
        )
        figures = {figure["figure"]: figure for figure in json.loads(printed)["figures"]}
        assert figures["overall"]["items"] == LANGUAGES["en"]
        assert max(abs(figure["difference"]) for figure in figures.values()) < 1e-7
    assert "unpaired 0" in h2htalk("compare", str(ours["en"].out), str(path), "--metric", "s")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "add --apply_chat_template"),
        (("--apply_chat_template", "--num_fewshot", "1"), "h2htalk's prompts are whole"),
        (
            ("--apply_chat_template", "--system_instruction", "Be brief."),
            "h2htalk's prompts are whole",
        ),
        (
            ("--apply_chat_template", "--metadata", '{"language": "zh"}'),
            "task h2htalk_mini_en is for en",
        ),
    ],
)
def test_options_that_change_what_is_asked_are_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    with LoopbackServer(reply=reply) as server:
        done = lm_eval(server, tmp_path, "--limit", "2", *words)
    assert done.returncode != 0
    assert message in done.stderr
    assert server.requests == 0


def test_a_failed_call_stops_the_harness_and_leaves_no_log(tmp_path: Path) -> None:
    item_found = HarnessSplit("mini", "en").items[0]
    with LoopbackServer(
        reply=reply, faults_at={item_found.messages[-1]["content"]: "http_500"}
    ) as server:
        done = lm_eval(server, tmp_path, "--apply_chat_template", "--limit", "4")
    assert done.returncode != 0
    assert list(tmp_path.rglob("samples_*")) == []


def test_replies_without_text_are_empty_replies() -> None:
    """What docs/integrations/lm-eval.md names: our own run scores the refusal's text, and nothing of the unreadable."""
    refusal, unreadable = HarnessSplit("mini", "en", limit=11).items[:2]
    bodies = {
        key_of(refusal.messages): completion(None, refusal="Not that."),
        key_of(unreadable.messages): {"x": 1},
    }

    def answer(request: dict[str, Any], count: int) -> str | Answer:
        body = bodies.get(key_of(request["messages"]))
        return "<think>Hm.</think> Good morning." if body is None else Answer(body)

    with LoopbackServer(reply=answer) as server:
        harness_results = run_here(server, {"limit": 11})
    rows = {row["doc"]["id"]: row for row in harness_results["samples"]["h2htalk_mini_en"]}
    assert [rows[item_found.id]["filtered_resps"] for item_found in (refusal, unreadable)] == [
        [""],
        [""],
    ]
    assert [rows[item_found.id]["lexical"] for item_found in (refusal, unreadable)] == [0.0, 0.0]
    harness_split = HarnessSplit("mini", "en")
    for name in rows.keys() - {refusal.id, unreadable.id}:
        values = harness_split.score(name, "Good morning.")
        assert not isinstance(values, str)
        assert rows[name]["lexical"] == values["lexical"]  # thinking is no part of the answer


def test_items_without_a_reference_are_left_out_and_counted(tmp_path: Path) -> None:
    """Their replies cannot be scored here; in our own run they are unscored too."""
    private = write_private(tmp_path, 22, 7)
    with LoopbackServer(reply=reply) as server:
        harness_results = run_here(server, {"split": str(tmp_path)})
    rows = {row["doc"]["id"]: row for row in harness_results["samples"]["h2htalk_mini_en"]}
    assert {name for name, row in rows.items() if row["unscored"]} == private
    assert all(row["metrics"] == ["unscored"] for name, row in rows.items() if name in private)
    scored = [row["lexical"] for name, row in rows.items() if name not in private]
    results = harness_results["results"]["h2htalk_mini_en"]
    assert results["unscored,none"] == len(private)
    assert results["lexical,none"] == pytest.approx(sum(scored) / len(scored))


def test_a_changed_persona_and_another_sap_reach_the_model(tmp_path: Path) -> None:
    split = load_split("mini").select("en", ("dialogue_base",))
    write_jsonl(tmp_path / "scenarios.jsonl", [scenario.to_dict() for scenario in split.scenarios])
    (tmp_path / "personas").mkdir()
    bundled = Path(load_split.__code__.co_filename).parent / "bundled" / "personas"
    for path in bundled.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / "personas" / path.name).write_text(
            text.replace("Nora", "Zelda"), encoding="utf-8"
        )

    def asked(**metadata: str) -> list[Any]:
        with LoopbackServer(reply="A reply.") as server:
            run_here(server, metadata)
        return sorted(key_of(json.loads(body)["messages"]) for body in server.counts)

    plain = asked(subtasks="dialogue_base")
    changed = asked(split=str(tmp_path))
    bare = asked(subtasks="dialogue_base", sap="none")
    own_requests = [
        key
        for key, item in items().items()
        if item.language == "en" and item.subtask == "dialogue_base"
    ]
    assert plain == sorted(own_requests)
    assert not {item_found[0] for item_found in plain} & {item_found[0] for item_found in bare}
    assert sorted(item_found[1:] for item_found in plain) == sorted(
        item_found[1:] for item_found in bare
    )
    assert any("Zelda" in item_found[0][1] for item_found in changed)
    assert not any("Nora" in item_found[0][1] for item_found in changed)

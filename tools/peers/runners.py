"""The commands that are measured against each other, and the prompts that all of them send."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
# Runs a fresh environment must not answer from an earlier one, nor reach for a network.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class Runner:
    """One program under measurement.

    `command` takes the round's own folder and the number of items (None: all); `environment` may hold `{url}`.
    """

    name: str
    command: Callable[[Path, int | None], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)


def write_prompts(python: Path, split: Path, out: Path) -> None:
    """One line an item: id, messages, their flattened text, reference, language. From `h2htalk prompts show all`."""
    command = [str(python.with_name("h2htalk")), "prompts", "show", "all", "--split", str(split), "--sap", "none"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    scenarios = {}
    with (split / "scenarios.jsonl").open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            scenarios[record["id"]] = record
    with out.open("w", encoding="utf-8") as file:
        for line in printed.splitlines():
            record = json.loads(line)
            scenario = scenarios[record["id"]]
            record["text"] = "\n\n".join(message["content"] for message in record["messages"])
            record |= {"reference": scenario["reference"], "language": scenario["language"]}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def copy_tasks(work: Path) -> None:
    """Lay the peers' task files beside the prompts: Inspect takes no absolute path, lm-eval no other folder."""
    for name in ("inspect_task.py", "lm_eval_task.yaml", "peer_metrics.py"):
        shutil.copy(HERE / name, work / name)


def floor_runner(python: Path, work: Path) -> Runner:
    """Bare aiohttp: what no client here can beat."""
    script = str(HERE / "aiohttp_floor.py")
    return Runner("aiohttp alone", lambda out, limit: [str(python), script, str(work / "prompts.jsonl"), "{url}"])


def h2htalk_runner(python: Path, work: Path) -> Runner:
    """The whole command: it also checks contracts and writes intervals, tables and the HTML page."""

    def command(out: Path, limit: int | None) -> list[str]:
        options = ["--embedder", "none", "--no-baselines", "--sap", "none", "--concurrency", "64"]
        return [
            *(str(python.with_name("h2htalk")), "evaluate", "server:mock@{url}", "--split", str(work / "split")),
            *(*options, "--out", str(out), *_limit(limit)),
        ]

    return Runner("h2htalk evaluate", command, {"H2HTALK_CACHE": str(work / "cache")})


def parts_runner(python: Path, work: Path) -> Runner:
    """The same library calls in one process, timed part by part."""
    script = str(HERE / "library_parts.py")
    return Runner(
        "h2htalk, parts",
        lambda out, limit: [str(python), script, str(work / "split"), str(out), "{url}"],
        {"H2HTALK_CACHE": str(work / "cache")},
    )


def lm_eval_runner(peers: Path, work: Path) -> Runner:
    """lm-eval's client for OpenAI-compatible servers, every sample logged."""

    def command(out: Path, limit: int | None) -> list[str]:
        model = "model=mock,base_url={url}/chat/completions,num_concurrent=64,tokenized_requests=False"
        return [
            *(str(peers.with_name("lm-eval")), "run", "--model", "local-chat-completions", "--model_args", model),
            *("--tasks", "h2htalk_prompts", "--include_path", str(work), "--apply_chat_template"),
            *("--log_samples", "--output_path", str(out), *_limit(limit)),
        ]

    return Runner("lm-eval", command, {**OFFLINE, "HF_HOME": str(work / "huggingface"), "OPENAI_API_KEY": "none"})


def inspect_runner(peers: Path, work: Path) -> Runner:
    """Inspect's client for OpenAI-compatible servers, its log as it is by default."""

    def command(out: Path, limit: int | None) -> list[str]:
        return [
            *(str(peers.with_name("inspect")), "eval", "inspect_task.py", "--model", "openai-api/loopback/mock"),
            *("--max-connections", "64", "--temperature", "0", "--max-tokens", "192", "--display", "none"),
            *("--log-dir", str(out), *_limit(limit)),
        ]

    environment = {
        "LOOPBACK_BASE_URL": "{url}",
        "LOOPBACK_API_KEY": "none",
        "H2HTALK_PROMPTS": str(work / "prompts.jsonl"),
        "XDG_DATA_HOME": str(work / "inspect-data"),
    }
    return Runner("Inspect", command, environment)


def _limit(limit: int | None) -> list[str]:
    return [] if limit is None else ["--limit", str(limit)]

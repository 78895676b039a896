"""The commands that are measured against each other, and the prompts that all of them send."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from h2htalk.data.splits import load_split

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
    command = [
        str(python.with_name("h2htalk")),
        "prompts",
        "show",
        "all",
        "--split",
        str(split),
        "--sap",
        "none",
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    scenarios = {one.id: one for one in load_split(str(split)).scenarios}
    with out.open("w", encoding="utf-8") as file:
        for line in printed.splitlines():
            record = json.loads(line)
            scenario = scenarios[record["id"]]
            record["text"] = "\n\n".join(message["content"] for message in record["messages"])
            record |= {"reference": scenario.reference, "language": scenario.language}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def copy_tasks(work: Path) -> None:
    """Lay the peers' task files beside the prompts: Inspect takes no absolute path, lm-eval no other folder."""
    for name in ("inspect_task.py", "lm_eval_task.yaml", "peer_metrics.py"):
        shutil.copy(HERE / name, work / name)


def runners(python: Path, peers: Path, work: Path) -> dict[str, Runner]:
    """Bare aiohttp, which no client here can beat; our whole command, and its library calls part by part; the peers.

    Our command also checks contracts and writes intervals, tables and the HTML page. The peers send through their own
    clients for OpenAI-compatible servers; lm-eval logs every sample, Inspect logs as it does by default.
    """
    split = work / "split"
    prompts = work / "prompts.jsonl"

    def runner(name: str, command: str, **environment: object) -> Runner:
        def words(out: Path, limit: int | None) -> list[str]:
            limited = "" if limit is None else f" --limit {limit}"
            return [word.replace("{out}", str(out)) for word in f"{command}{limited}".split()]

        return Runner(name, words, {key: str(value) for key, value in environment.items()})

    client = "model=mock,base_url={url}/chat/completions,num_concurrent=64,tokenized_requests=False"
    made = (
        runner("aiohttp alone", f"{python} {HERE / 'aiohttp_floor.py'} {prompts} {{url}}"),
        runner(
            "h2htalk evaluate",
            f"{python.with_name('h2htalk')} evaluate server:mock@{{url}} --split {split} --embedder none"
            " --no-baselines --sap none --concurrency 64 --out {out}",
            H2HTALK_CACHE=work / "cache",
        ),
        runner(
            "h2htalk, parts",
            f"{python} {HERE / 'library_parts.py'} {split} {{out}} {{url}}",
            H2HTALK_CACHE=work / "cache",
        ),
        runner(
            "lm-eval",
            f"{peers.with_name('lm-eval')} run --model local-chat-completions --model_args {client}"
            f" --tasks h2htalk_prompts --include_path {work} --apply_chat_template --log_samples --output_path {{out}}",
            **OFFLINE,
            HF_HOME=work / "huggingface",
            OPENAI_API_KEY="none",
        ),
        runner(
            "Inspect",
            f"{peers.with_name('inspect')} eval inspect_task.py --model openai-api/loopback/mock --max-connections 64"
            " --temperature 0 --max-tokens 192 --display none --log-dir {out}",
            LOOPBACK_BASE_URL="{url}",
            LOOPBACK_API_KEY="none",
            H2HTALK_PROMPTS=prompts,
            XDG_DATA_HOME=work / "inspect-data",
        ),
    )
    return {one.name: one for one in made}

"""Make the logs in tests/data/imports/fixtures with the real Inspect and lm-eval, against a loopback server.

python tools/harness_logs/make_logs.py --inspect ENV/bin/python --lm-eval ENV/bin/python

Inspect 0.3.285 with openai, and lm_eval[api] 0.4.13; both also with rapidfuzz, jieba, sacrebleu, pyarrow and
huggingface-hub, which our own scorer needs. Of five dialogue items of `mini` the second call fails (HTTP 400) in
Inspect and in ours, and the third reply is empty; a second epoch gets other replies.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
FIXTURES = ROOT / "tests" / "data" / "imports" / "fixtures"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "doubles")]

from h2htalk.data.files import write_jsonl  # noqa: E402
from h2htalk.data.splits import load_split  # noqa: E402
from support.doubles.loopback import Answer, LoopbackServer, completion  # noqa: E402

ITEMS, FAILS, EMPTY, EPOCHS = 5, 1, 2, 2


def items() -> list[dict[str, Any]]:
    english = [
        s
        for s in load_split("mini@1").scenarios
        if s.language == "en" and s.subtask.startswith("dialogue")
    ]
    chosen = sorted(english, key=lambda s: len(s.turns))[:ITEMS]
    return [
        {
            "id": s.id,
            "turns": [turn.to_dict() for turn in s.turns],
            "last_turn": s.turns[-1].content,
            "reference": s.reference,
        }
        for s in chosen
    ]


def reply_to(place: int, item: dict[str, Any], epoch: int) -> str:
    """Part of the reference: another part in another epoch."""
    words = item["reference"].split()
    text = " ".join(words[epoch :: 2 + place % 2])
    if place == EMPTY:
        return ""
    if place % 3 == 0:
        return f"{text} Really?"
    return text


class Server:
    """A loopback server for one run; `stops`: no answer after so many requests, so that the run can be killed."""

    def __init__(
        self, asked: list[dict[str, Any]], fails: bool = True, stops: int | None = None
    ) -> None:
        self.seen: Counter[str] = Counter()
        places = {item["last_turn"]: place for place, item in enumerate(asked)}

        def reply(request: dict[str, Any], count: int) -> str | Answer:
            last = request["messages"][-1]["content"]
            place = places[last]
            if stops is not None and sum(self.seen.values()) >= stops:
                return "hang"
            epoch = self.seen[last] % EPOCHS
            self.seen[last] += 1
            if fails and place == FAILS:
                return Answer({"error": {"message": "blocked by the gateway"}}, status=400)
            return Answer(completion(reply_to(place, asked[place], epoch)))

        self.server = LoopbackServer(reply=reply)


def run(
    python: Path, name: str, arguments: list[str], work: Path, url: str
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LOOPBACK_BASE_URL": url,
        "LOOPBACK_API_KEY": "none",
        "OPENAI_API_KEY": "none",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(work / "huggingface"),
        "XDG_DATA_HOME": str(work / "inspect"),
    }
    return subprocess.Popen([str(python.with_name(name)), *arguments], cwd=work, env=environment)


def inspect(
    python: Path, work: Path, name: str, options: list[str], *, stops: int | None = None
) -> None:
    """One log of Inspect, as NAME.eval or NAME.json."""
    out = work / name
    with Server(asked=items(), stops=stops).server as server:
        command = [
            "eval",
            "inspect_tasks.py",
            "--model",
            "openai-api/loopback/demo",
            "--max-connections",
            "1",
        ]
        command += [
            "--display",
            "none",
            "--log-dir",
            str(out),
            "--max-retries",
            "0",
            "--log-buffer",
            "1",
        ]
        started = run(python, "inspect", [*command, *options], work, server.url)
        if stops is not None:
            while server.requests <= stops:
                time.sleep(0.2)
            time.sleep(5)  # the samples before are written
            started.send_signal(signal.SIGKILL)
        started.wait()
    found = next(path for path in out.iterdir() if path.suffix in (".eval", ".json"))
    shutil.copy(found, FIXTURES / f"{name}{found.suffix}")


def lm_eval(python: Path, work: Path, task: str, kept: str, options: list[str]) -> None:
    """The files of a task that match `kept`; a failed call would end the run without any."""
    out = work / task
    with Server(items(), fails=False).server as server:
        model = f"model=demo,base_url={server.url}/chat/completions,num_concurrent=1,tokenized_requests=False"
        command = [
            "run",
            "--model",
            "local-chat-completions",
            "--model_args",
            model,
            "--tasks",
            task,
        ]
        command += [
            "--include_path",
            str(work),
            "--apply_chat_template",
            "--log_samples",
            "--output_path",
            str(out),
        ]
        run(python, "lm-eval", [*command, *options], work, server.url).wait()
    for path in out.glob(f"*/{kept}"):
        shutil.copy(path, FIXTURES / path.name)


EDIT = """
import sys
from inspect_ai.log import ProvenanceData, edit_score, invalidate_samples, read_eval_log, write_eval_log
from inspect_ai.scorer import ScoreEdit
edited, invalid = sys.argv[1:]
log = read_eval_log(edited)
who = ProvenanceData(author="reviewer", reason="counted by hand")
edit_score(log, log.samples[0].id, "asks_back", ScoreEdit(value="I", provenance=who))
write_eval_log(log, edited)
log = read_eval_log(edited)
write_eval_log(invalidate_samples(log, "all", who), invalid)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the fixtures of other harnesses' logs.")
    parser.add_argument("--inspect", type=Path, required=True)
    parser.add_argument("--lm-eval", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for path in HERE.iterdir():
            if path.is_file() and path.name != Path(__file__).name:
                shutil.copy(path, work / path.name)
        asked = items()
        write_jsonl(work / "items.jsonl", asked)
        replies = [
            {"id": item["id"], "sample": epoch, "text": reply_to(place, item, epoch)}
            for place, item in enumerate(asked)
            if place != FAILS
            for epoch in range(EPOCHS)
        ]
        shutil.rmtree(FIXTURES, ignore_errors=True)
        write_jsonl(FIXTURES / "replies.jsonl", replies)
        once = ["--no-fail-on-error"]
        inspect(arguments.inspect, work, "once", once)
        inspect(
            arguments.inspect,
            work,
            "epochs",
            [*once, "-T", f"epochs={EPOCHS}", "--sample-id", f"{asked[0]['id']},{asked[3]['id']}"],
        )
        first = ["-T", "own_id=false", "-T", "scorers=1", "--limit", "1"]
        inspect(arguments.inspect, work, "positions", [*first, "--log-format", "json"])
        inspect(arguments.inspect, work, "edited", first)
        inspect(
            arguments.inspect,
            work,
            "stopped",
            ["--fail-on-error", "--sample-id", asked[FAILS]["id"]],
        )
        inspect(arguments.inspect, work, "killed", [*once, "--limit", "3"], stops=1)
        log = FIXTURES / "positions.json"  # without its indentation
        log.write_text(json.dumps(json.loads(log.read_text())))
        edit = [str(FIXTURES / f"{name}.eval") for name in ("edited", "invalid")]
        subprocess.run([str(arguments.inspect), "-c", EDIT, *edit], check=True)
        lm_eval(arguments.lm_eval, work, "companion", "*", [])
        lm_eval(arguments.lm_eval, work, "companion_filters", "samples_*", ["--limit", "1"])


if __name__ == "__main__":
    main()
    print(
        json.dumps(
            {path.name: path.stat().st_size for path in sorted(FIXTURES.iterdir())}, indent=1
        )
    )

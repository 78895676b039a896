"""CPU seconds of the parts of h2htalk's hot path, in one process: render, generate + store, read, lexical.

python tools/peers/library_parts.py SPLIT OUT URL

Prints JSON: seconds a part. What a process pays once (imports, tokenizer tables, the split) stands apart as `once`.
"""

from __future__ import annotations

import itertools
import json
import sys
import time

START = time.process_time()

from h2htalk.benchmark.evaluate import generate, make_plan, make_signature, missing_requests  # noqa: E402
from h2htalk.benchmark.metrics.lexical import lexical_scores  # noqa: E402
from h2htalk.benchmark.run import RunWriter  # noqa: E402
from h2htalk.benchmark.score_run import open_metrics  # noqa: E402
from h2htalk.benchmark.settings import EvaluateSpec  # noqa: E402
from h2htalk.chat.engines import ChatOptions, open_chat  # noqa: E402
from h2htalk.chat.store.stage_calls import StageCalls  # noqa: E402
from h2htalk.data.responses import Response  # noqa: E402
from h2htalk.data.run_folder import RunFolder  # noqa: E402
from h2htalk.text.tokens import tokenizer  # noqa: E402


def main(split: str, out: str, url: str) -> dict[str, float]:
    """Seconds a part; raises RuntimeError when an answer is missing."""
    spec = EvaluateSpec(
        model=f"server:mock@{url}", split=split, out=out, embedder="none", sap="none"
    )
    plan = make_plan(spec)
    chat = open_chat(spec.model, ChatOptions(concurrency=spec.concurrency))
    signature = make_signature(plan, chat.subject, open_metrics(spec.embedder, spec.rouge))
    writer = RunWriter(
        RunFolder(spec.out_path), spec.to_dict(), signature, plan.split, plan.prompts.files()
    )
    for language in ("en", "zh"):
        tokenizer(language)
    marks = [time.process_time()]
    requests = missing_requests(plan, writer.answers)
    marks.append(time.process_time())
    calls = StageCalls(writer.calls, "generate", spec.model, paid=False)
    generate(chat, requests, calls, spec)
    marks.append(time.process_time())
    answers = writer.folder.answers()
    marks.append(time.process_time())
    texts = [a.answer for s in plan.split.scenarios if isinstance(a := answers[s.id, 0], Response)]
    references = [s.reference for s in plan.split.scenarios]
    lexical_scores(texts, references, [s.language for s in plan.split.scenarios])
    marks.append(time.process_time())
    writer.close()
    parts = [after - before for before, after in itertools.pairwise(marks)]
    return {
        "once": marks[0] - START,
        **dict(zip(("render", "generate", "read", "lexical"), parts, strict=True)),
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))

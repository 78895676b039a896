"""The files by which people, or fresh readers, answer requests in the place of a model, and the shares of their score.

FOLDER/rules-LANGUAGE.txt, FOLDER/LANGUAGE-1.jsonl, LANGUAGE-2.jsonl ... ─► readers ─► FOLDER/out/*.jsonl
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from h2htalk.chat.protocol import Reply, Request
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.distributions import wilson_interval


def write_requests(
    folder: Path, language: Language, requests: Sequence[Request], parts: int
) -> None:
    """Write the rules and the questions of a language, dealt out to so many files; `folder/out` takes the replies."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    rules, _ = requests[0].messages
    (folder / f"rules-{language}.txt").write_text(rules.content, encoding="utf-8")
    for part in range(parts):
        lines = [
            {"id": request.id, "prompt": request.messages[1].content}
            for request in requests[part::parts]
        ]
        write_jsonl(folder / f"{language}-{part + 1}.jsonl", lines)
        print(f"{language}-{part + 1}.jsonl: {len(lines)} questions")


def read_replies(folder: Path) -> dict[str, Reply]:
    """What the readers answered, by the id of the question."""
    replies: dict[str, Reply] = {}
    for path in sorted((folder / "out").glob("*.jsonl")):
        for _, line in read_jsonl(path):
            replies[line["id"]] = Reply(str(line["reply"]))
    return replies


def rate(values: Sequence[bool]) -> str:
    """A share with its interval."""
    if not values:
        return "none"
    share = sum(values) / len(values)
    low, high = wilson_interval(share, len(values))
    return f"{sum(values)} of {len(values)} ({share:.2f}; {low:.2f} to {high:.2f})"

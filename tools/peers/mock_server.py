"""The loopback server of the benchmark: a different answer to each prompt, in the prompt's language.

python tools/peers/mock_server.py --latency 0.05

It prints its URL, serves until its stdin ends, then prints what it saw as JSON: the number of requests and the
seconds from the first request to the last answer. One fixed reply would be tokenized once and never again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "doubles"), str(ROOT / "tools")]

from make_synthetic_split import REFERENCE_LENGTH, Writer  # noqa: E402

from support.doubles.loopback import Answer, LoopbackServer, completion  # noqa: E402

REPLIES = 8192  # a language: most of 2,325 prompts meet one of their own
# Every Chinese prompt opens with this, as UTF-8 or, from clients that escape, as JSON.
CHINESE = ("你是".encode(), b"\\u4f60\\u662f")


class VariedServer(LoopbackServer):
    """Draws each answer by a checksum of the request, from texts that are encoded once."""

    def __init__(self, latency: float) -> None:
        super().__init__(latency=latency)
        self.answers = {language: _replies(language) for language in REFERENCE_LENGTH}
        self.asked = 0
        self.first = self.last = 0.0

    def decide(self, body: bytes, messages: bool = False) -> bytes:
        now = time.perf_counter()
        self.first = self.first or now
        self.last = now
        self.asked += 1
        answers = self.answers["zh" if any(mark in body for mark in CHINESE) else "en"]
        return answers[zlib.crc32(body) % REPLIES]

    def report(self) -> str:
        span = self.last + self.latency - self.first if self.asked else 0.0
        return json.dumps({"requests": self.asked, "span": span, "connections": self.connections})


def _replies(language: str) -> list[bytes]:
    writer = Writer(language, random.Random(f"replies:{language}"))
    shortest, longest = REFERENCE_LENGTH[language]
    texts = (writer.text(shortest, longest) for _ in range(REPLIES))
    return [
        Answer(completion(text), headers={"content-type": "application/json"}).encode()
        for text in texts
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="The benchmark's loopback server.")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    with VariedServer(parser.parse_args().latency) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    print(server.report(), flush=True)


if __name__ == "__main__":
    main()

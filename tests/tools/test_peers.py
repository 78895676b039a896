"""tools/peers: the server that h2htalk, lm-eval and Inspect are measured against."""

import json
import sys
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/peers"))
from measure import Server


@pytest.mark.slow  # it makes 16,384 replies first
def test_each_prompt_has_a_reply_in_its_language_and_every_request_is_counted() -> None:
    replies = []
    with Server(0.0) as server:
        for prompt in ("Hello, are you there?", "你是谁？", "Hello, are you there?"):
            body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": prompt}]}).encode()
            request = urllib.request.Request(f"{server.url}/chat/completions", body)
            with urllib.request.urlopen(request, timeout=30) as answer:
                replies.append(json.load(answer)["choices"][0]["message"]["content"])
    english, chinese, again = replies
    assert (english.isascii(), chinese.isascii(), again) == (True, False, english)
    assert server.seen["requests"] == 3

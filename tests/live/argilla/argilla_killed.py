"""Open a round and die at the n-th request: `python argilla_killed.py SPEC OUT N`, with SPEC as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx

from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.settings import RoundSpec


def main(spec: str, out: str, last: int) -> None:
    left = last
    request = httpx.Client.request

    def counted(self: httpx.Client, *arguments: Any, **options: Any) -> httpx.Response:
        nonlocal left
        reply = request(self, *arguments, **options)
        left -= 1
        if left == 0:
            # The server has processed the request, but its reply is lost.
            os.kill(os.getpid(), signal.SIGKILL)
        return reply

    httpx.Client.request = counted  # type: ignore[method-assign]
    open_round(RoundSpec.from_dict(json.loads(spec), "spec"), Path(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

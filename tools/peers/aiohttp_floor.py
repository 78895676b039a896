"""The floor of any client here: aiohttp alone sends the prompts, 64 in flight; nothing is stored or scored.

python tools/peers/aiohttp_floor.py PROMPTS URL
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp


async def work(session: aiohttp.ClientSession, url: str, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        async with session.post(url, data=body) as answer:
            assert answer.status == 200
            await answer.read()


async def send(prompts: Path, url: str, concurrency: int = 64) -> None:
    with prompts.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    bodies = (json.dumps({"model": "mock", "messages": r["messages"]}).encode() for r in records)
    connector = aiohttp.TCPConnector(limit=concurrency)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(
            *(work(session, url + "/chat/completions", bodies) for _ in range(concurrency))
        )


if __name__ == "__main__":
    asyncio.run(send(Path(sys.argv[1]), sys.argv[2]))

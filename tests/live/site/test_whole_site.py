"""Every page of a site in Chromium, opened from a disk: silent, accessible, narrow, and deaf to what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from curation_made import dialogue, gathered
from studies_made import cases_of, judge_of, spec, write_script
from test_item_browser import HOSTILE, Watched

import h2htalk
from h2htalk.benchmark.compare.comparison import write_comparison
from h2htalk.benchmark.gate.gate import to_html
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.splits import load_split
from h2htalk.site.build import build_site, print_drawings, share

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright.sync_api", reason="drives Chromium: pip install playwright")
pytestmark = pytest.mark.live
LEVELS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
SHORTEST = 4  # pages


@pytest.fixture(scope="module", params=["en", "zh"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, of which one has a hostile name and says hostile things, a study, and one transcript."""
    folder = tmp_path_factory.mktemp("site")
    scenarios = load_split("mini").select("en").scenarios
    says = {one.id: f"{HOSTILE[k % 4]} {one.references[0]}" for k, one in enumerate(scenarios)}
    write_jsonl(folder / "hostile.jsonl", [{"id": name, "text": text} for name, text in says.items()])
    runs = []
    for name, model in (
        ("a", "baseline:constant"),
        ("b", "baseline:copy-last-turn"),
        ("c", f"scripted:{folder}/hostile.jsonl"),
    ):
        ask = h2htalk.EvaluateSpec(
            model=model, split="mini", language="en", limit=44, embedder="none", out=str(folder / name)
        )
        h2htalk.evaluate(ask)
        runs.append(folder / name)

    def hostile(_: object) -> str:
        return f"{HOSTILE[0]} {HOSTILE[1]}"

    ask = h2htalk.EvaluateSpec(
        model=hostile, name=HOSTILE[0], split="mini", language="en", limit=44, embedder="none", out=str(folder / "d")
    )
    h2htalk.evaluate(ask)
    ask = h2htalk.EvaluateSpec(
        model=hostile, name="__proto__", split="mini", language="en", limit=44, embedder="none", out=str(folder / "e")
    )
    h2htalk.evaluate(ask)
    runs += [folder / "d", folder / "e"]
    cases = [case for case in cases_of("high_risk", "en") if case.study == "high_risk"][:2]
    judge = write_script(folder / "judge.jsonl", judge_of(cases))
    model = write_script(folder / "model.jsonl", "It will pass.")
    run_study(spec("sap", model, folder / "study", judge=judge, arms=("sap",), language="en", limit=2))
    for name in ("one", "two"):
        run_study(spec("instructions", model, folder / name, judge=judge, language="en", limit=24))
    curation = gathered(folder / "curation", [dialogue(k) for k in range(4)]).path
    studies = [folder / name for name in ("study", "one", "two")]
    build_site([*runs, *studies, curation], folder / "out", request.param, title=HOSTILE[1])
    share(runs, load_split("mini").select("en", limit=44).scenarios[0].id, folder / "out" / "one.html", request.param)
    if request.param == "en":  # other pages have the same sheet and frame
        write_comparison(h2htalk.compare(runs[0], *runs[2:4]), folder / "out" / "compare")
        for name, path in (("run", runs[3] / "report.html"), ("study", studies[0] / "report.html")):
            write_text(folder / "out" / f"{name}.html", path.read_text(encoding="utf-8"))
        write_text(folder / "out" / "gate.html", to_html(h2htalk.gate(runs[3], runs[1])))
    return folder / "out"


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) >= SHORTEST
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_breaks_a_rule_of_level_aa(browser: Browser, site: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    broken = []
    for path in pages(site):
        page = browser.new_page(color_scheme=scheme, bypass_csp=True)
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        found = axe.Axe().run(page, options=LEVELS).response["violations"]
        broken += [(path.name, one["id"], [node["html"] for node in one["nodes"]][:2]) for one in found]
        page.close()
    assert broken == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_pages_are_silent_and_as_wide_as_the_screen(browser: Browser, site: Path, width: int) -> None:
    for path in pages(site):
        watched = Watched(browser, path, viewport={"width": width, "height": 900})
        watched.page.wait_for_timeout(300)
        assert watched.page.evaluate("window.__attacked") is None
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, path
        watched.alarms = [one for one in watched.alarms if not one.startswith(f"request {site.as_uri()}/")]
        watched.close()


def test_links_lead_to_pages_that_are_there(browser: Browser, site: Path) -> None:
    for path in pages(site):
        page = browser.new_page()
        page.goto(path.as_uri())
        for href in page.eval_on_selector_all("a[href]", "found => found.map((one) => one.href)"):
            address = href.partition("#")[0]
            assert not address.startswith("file:") or Path(address.removeprefix("file://")).exists(), (path, href)
            assert not address.startswith("javascript:")
        page.close()


def test_the_keyboard_reaches_every_link_and_button_of_a_page(browser: Browser, site: Path) -> None:
    for path in pages(site):
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        wanted = page.evaluate(
            "[...document.querySelectorAll('a[href],button,select,input,summary')]"
            ".filter((one) => one.offsetParent && !one.disabled).length"
        )
        page.evaluate("window.reached = new Set(); document.addEventListener('focusin', (e) => reached.add(e.target))")
        for _ in range(min(wanted, 150) + 10):
            page.keyboard.press("Tab")
        assert page.evaluate("reached.size") >= min(wanted, 150) * 0.95, path
        page.close()


def test_a_pdf_of_a_drawing_has_one_page_of_its_size_and_is_printed_alike(site: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        shutil.copy(site / "figures" / "funnel-1.svg", folder)
        assert print_drawings(folder) == ""
    first, second = ((tmp_path / name / "funnel-1.pdf").read_bytes() for name in "ab")
    assert first == second
    width, height = re.findall(r'(?:width|height)="([0-9]+)"', (tmp_path / "a/funnel-1.svg").read_text())[:2]
    (box,) = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", first)
    assert [float(end) * 4 / 3 for end in box] == pytest.approx([int(width), int(height)], abs=1)
    assert {path.suffix for path in (tmp_path / "a").iterdir()} == {".svg", ".pdf"}

"""A site in Chromium, opened from a disk: pages are silent, accessible, narrow; what the item browser shows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import h2htalk
from h2htalk.benchmark.compare.comparison import write_comparison
from h2htalk.benchmark.gate.report import to_html
from h2htalk.benchmark.judge.judgements import PeopleRating, answer_id, write_people_ratings
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.responses import Failure, Response
from h2htalk.data.splits import load_split
from h2htalk.site.build import build_site, print_drawings, share
from h2htalk.site.items import share_item
from support.curations import dialogue, gathered
from support.judged_runs import answered_run, command, scripted_judge, verdict
from support.sites import large_runs, made_context, made_run, mini, write_site
from support.studies import cases_of, judge_of, spec, write_script

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="drives Chromium: pip install playwright"
)
expect = sync_api.expect

pytestmark = pytest.mark.live

ATTACK = "window.__attacked=true;alert(1)"
HOSTILE = [
    f"</script><script>{ATTACK}</script>",
    f'<img src="x" onerror="{ATTACK}"><svg onload="{ATTACK}">',
    f"javascript:{ATTACK}//<!-- ]]> &amp; <a href='javascript:{ATTACK}'>x</a>",
    "right\u202eto\u202dleft\u2066\u200f \u2028 \u2029",
    "nul\x00 escape\x1b[31m bell\x07 half \ud800",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "%E0%A4%A",
]
BUSY = 2.5  # docs/measurements.md has the times; here another program may have the cores
COUNT, ROWS = "#count", "#item-table tbody tr"


class Watched:
    """A page, and everything it did that a site must not do."""

    def __init__(self, browser: Browser, path: Path, address: str = "", **options: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 900}, **options}
        self.page: Page = browser.new_page(**options)
        self.alarms: list[str] = []
        self.page.on(
            "dialog",
            lambda dialog: (self.alarms.append(f"dialog {dialog.message}"), dialog.dismiss()),
        )
        self.page.on("pageerror", lambda error: self.alarms.append(f"error {error}"))
        self.page.on("console", lambda message: self.alarms.append(f"console {message.text}"))
        self.page.on("request", lambda request: self._note(request.url, path.parent.as_uri()))
        self.page.goto(path.as_uri() + address)

    def _note(self, url: str, folder: str) -> None:
        if not url.startswith(f"{folder}/") and not url.startswith("blob:"):
            self.alarms.append(f"request {url}")

    def ids(self) -> list[str]:
        return self.page.locator(f"{ROWS} th a").all_inner_texts()

    def close(self) -> None:
        assert self.alarms == []
        self.page.close()


def small_site(folder: Path) -> Path:
    """Three runs of 60 items: the second breaks rules, the third fails once and was asked half."""
    split, half = mini(*range(60)), mini(*range(30))
    runs = [
        made_run(
            folder / "a",
            split,
            {s.id: f"{s.references[0]} Oh." for s in split.scenarios},
            "server:alpha",
        ),
        made_run(
            folder / "b",
            split,
            {s.id: f"The words of {n}.\n\nB" for n, s in enumerate(split.scenarios)},
            "server:beta",
        ),
    ]
    third: dict[str, str | Failure] = {s.id: f"third {n}" for n, s in enumerate(half.scenarios)}
    third[half.scenarios[4].id] = Failure("timeout", "at 10.0.0.1", 3)
    runs.append(made_run(folder / "c", half, third, "server:gamma"))
    return write_site(made_context(runs), folder / "site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def opened(browser: Browser, site: Path) -> Iterator[Watched]:
    watched = Watched(browser, site)
    watched.page.wait_for_selector(ROWS)
    yield watched
    watched.close()


def test_the_list_has_pages_of_fifty_and_filters_narrow_it(opened: Watched) -> None:
    page, ids = opened.page, [s.id for s in mini(*range(60)).scenarios]
    expect(page.locator(COUNT)).to_have_text("60 of 60 items · page 1 of 2")
    assert opened.ids() == ids[:50]
    page.get_by_role("button", name="Next page").click()
    assert opened.ids() == ids[50:]
    page.select_option("#choose-subtask", "DialogueEmotion")
    expect(page.locator(COUNT)).to_have_text("7 of 60 items")
    page.select_option("#choose-subtask", "")
    page.select_option("#choose-rule", "one_line")
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(COUNT)).to_have_text("60 of 60 items · page 1 of 2")
    page.fill("#choose-q", "The words of 42.")
    expect(page.locator(COUNT)).to_have_text("1 of 60 items")
    assert opened.ids() == [ids[42]]
    page.fill("#choose-q", "")
    page.select_option("#choose-run1", label="server:gamma")
    page.select_option("#choose-run2", "")
    expect(page.locator(COUNT)).to_have_text("30 of 60 items")
    page.select_option("#choose-state", "failed")
    assert opened.ids() == [ids[4]]
    assert "timeout" in page.locator(ROWS).inner_text()


def test_columns_sort_both_ways_and_items_without_a_value_come_last(opened: Watched) -> None:
    page = opened.page
    page.locator("#item-table thead button", has_text="Difference").click()
    values = [float(text) for text in page.locator(f"{ROWS} td:nth-child(4)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    page.locator("#item-table thead button", has_text="beta").click()
    assert page.locator("th[aria-sort=ascending]").inner_text().strip() == "server:beta"
    page.select_option("#choose-run3", label="server:gamma")
    page.locator("#item-table thead button", has_text="gamma").click()
    page.locator("#item-table thead button", has_text="gamma").click()
    assert page.locator("th[aria-sort=descending]").inner_text().strip() == "server:gamma"
    assert page.locator(f"{ROWS} td:nth-child(4)").all_inner_texts()[29:32] == ["timeout", "–", "–"]


def test_models_side_by_side_with_the_words_marked_that_differ(opened: Watched) -> None:
    page, scenario = opened.page, mini(*range(60)).scenarios[2]
    page.select_option("#choose-run3", label="server:gamma")
    page.get_by_role("link", name=scenario.id).click()
    page.wait_for_selector("#item article")
    assert page.locator("#item article h3").all_inner_texts() == [
        "server:alpha",
        "server:beta",
        "server:gamma",
    ]
    assert (
        page.locator("#item article").nth(0).locator(".text").first.inner_text()
        == f"{scenario.references[0]} Oh."
    )
    marked = " ".join(page.locator("#item article").nth(1).locator("mark").all_inner_texts())
    assert marked.startswith("The words of 2")
    assert (
        "too_many_sentences more sentences than allowed"
        in page.locator("#item article").first.inner_text()
    )
    prompt = page.locator("#item details", has_text="Prompt as sent to")
    assert not prompt.locator(".text").first.is_visible()
    prompt.locator("summary").click()
    assert "".join(scenario.turns[-1].content.split()) in "".join(prompt.inner_text().split())
    assert page.get_by_text(scenario.references[0], exact=True).is_visible()


def test_addresses_open_what_they_name_and_back_goes_back(browser: Browser, site: Path) -> None:
    ids = [s.id for s in mini(*range(60)).scenarios]
    watched = Watched(
        browser, site, f"#run=0000000b,0000000c&subtask=DialogueBase&by=lexical&item={ids[3]}"
    )
    page = watched.page
    expect(page.locator("#item h2")).to_have_text(ids[3])
    expect(page.locator("#item article h3")).to_have_text(["server:beta", "server:gamma"])
    page.get_by_role("link", name="Next item").click()
    expect(page.locator("#item h2")).to_have_text(ids[4])
    page.get_by_role("link", name="Back to the list").click()
    expect(page.locator(COUNT)).to_have_text("7 of 60 items")
    assert page.evaluate("document.activeElement.textContent") == ids[4]
    page.select_option("#choose-state", "failed")
    expect(page.locator(COUNT)).to_have_text("1 of 60 items")
    address = page.url
    page.go_back()
    expect(page.locator(COUNT)).to_have_text("7 of 60 items")
    page.go_back()
    expect(page.locator("#item h2")).to_have_text(ids[4])
    page.go_back()
    expect(page.locator("#item h2")).to_have_text(ids[3])
    again = Watched(browser, site, address[address.index("#") :])
    expect(again.page.locator(COUNT)).to_have_text("1 of 60 items")
    again.close()
    watched.close()


@pytest.mark.parametrize(
    "address",
    [
        "#run=x,,y&split=%&sort=__proto__&page=-4&rule=constructor&state=x&by=toString",
        "#%E0%A4%A",
        "#item=__proto__",
    ],
)
def test_what_an_address_names_wrongly_is_ignored(
    browser: Browser, site: Path, address: str
) -> None:
    watched = Watched(browser, site, address)
    expect(watched.page.locator(COUNT)).to_have_text("60 of 60 items · page 1 of 2")
    watched.close()


def test_an_item_about_a_crisis_opens_behind_a_note_with_help_lines(opened: Watched) -> None:
    page = opened.page
    scenario = next(s for s in mini(*range(60)).scenarios if s.tags.risk != "none")
    row = page.locator(ROWS, has_text=scenario.id)
    assert "about a crisis" in row.inner_text()
    row.get_by_role("link").click()
    note = page.get_by_role("note")
    assert "Samaritans, call 116 123" in note.inner_text()
    assert re.search(r"\d{4}-\d\d-\d\d", note.inner_text())
    assert page.locator("#item .text").count() == 0
    page.get_by_role("button", name="Show the item").click()
    expect(page.locator("#item article")).to_have_count(2)
    page.get_by_role("link", name="Next item").click()
    page.get_by_role("link", name="Previous item").click()
    page.go_back()
    page.get_by_role("link", name="Back to the list").click()
    page.locator(ROWS, has_text=scenario.id).get_by_role("link").click()
    expect(page.get_by_role("note")).to_be_visible()


def test_the_keyboard_alone_reaches_everything(browser: Browser, site: Path) -> None:
    watched = Watched(browser, site)
    page = watched.page
    page.wait_for_selector(ROWS)

    def tab_to(test: str) -> None:
        for _ in range(150):
            page.keyboard.press("Tab")
            if page.evaluate(f"(() => {{ const e = document.activeElement; return {test}; }})()"):
                return
        raise AssertionError(f"Tab does not reach {test}")

    tab_to("e.id === 'choose-q'")
    page.keyboard.type("beta", delay=5)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    tab_to("e.id === 'choose-subtask'")
    page.keyboard.type("DialogueE")
    expect(page.locator(COUNT)).to_have_text("7 of 60 items")
    tab_to("e.id === 'choose-differ'")
    page.keyboard.press("Space")
    tab_to("e.id === 'clear'")
    page.keyboard.press("Enter")
    expect(page.locator(COUNT)).to_contain_text("60 of 60")
    tab_to("e.dataset.sort === 'difference'")
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Difference")
    assert page.evaluate("document.activeElement.dataset.sort") == "difference"
    tab_to("e.closest('tbody')")
    item = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    expect(page.locator("#item h2")).to_have_text(item)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    tab_to("e.textContent === 'Copy link to this item'")
    tab_to("e.tagName === 'SUMMARY' && e.textContent.startsWith('Prompt')")
    page.keyboard.press("Enter")
    assert page.locator("#item details[open]").count() == 1
    watched.close()


def test_hostile_content_is_shown_and_does_nothing_in_any_view(
    browser: Browser, tmp_path: Path
) -> None:
    split, long = mini(*range(len(HOSTILE) + 1)), "word " * 40_000
    texts = [*HOSTILE, long]
    whole = [
        text.encode("utf-8", "replace").decode() for text in texts
    ]  # a file of items holds no half character
    scenarios = [
        replace(s, id=text if text != long else "long", references=(text,))
        for s, text in zip(split.scenarios, whole, strict=True)
    ]
    split = replace(split, scenarios=tuple(scenarios))
    answers = {
        s.id: f"{t} \n\n{t}" if t != long else long for s, t in zip(scenarios, texts, strict=True)
    }
    others: dict[str, str | Failure] = {
        s.id: Failure(t[:200]) for s, t in zip(scenarios, whole, strict=True)
    }
    runs = [
        made_run(tmp_path / "a", split, answers, "__proto__", thinking="".join(HOSTILE[:5])),
        made_run(tmp_path / "b", split, others, "".join(HOSTILE[:3])),
    ]
    context = made_context(runs)
    watched = Watched(browser, write_site(context, tmp_path / "site"))
    page = watched.page
    expect(page.locator(COUNT)).to_have_text(f"{len(texts)} of {len(texts)} items")
    ids = watched.ids()
    assert ids[0] == HOSTILE[0]
    assert ids[3] == "rightU+202EtoU+202DleftU+2066U+200F U+2028 U+2029"
    page.fill("#choose-q", "window.__attacked")
    expect(page.locator(COUNT)).to_contain_text("3 of")
    for state in ("failed", "unscored", "kept", ""):
        page.select_option("#choose-state", state)
    page.fill("#choose-q", "")
    expect(page.locator(COUNT)).to_have_text(f"{len(texts)} of {len(texts)} items")
    for number in range(len(texts)):
        page.locator(f"{ROWS} a").nth(number).click()
        if page.get_by_role("note").count():
            page.get_by_role("button", name="Show the item").click()
        page.wait_for_selector("#item article")
        for summary in page.locator("#item summary").all():
            summary.click()
        assert page.locator("main img, main iframe, main svg, main script:not(#data)").count() == 0
        assert page.locator("main a[href^='javascript']").count() == 0
        if number == 4:
            shown = page.locator("#item article .text").first.inner_text()
            assert shown.startswith("nulU+0000 escapeU+001B[31m bellU+0007 half U+D800")
        if number == len(HOSTILE):
            text = page.locator("#item article .text").first
            assert len(text.inner_text()) < 11_000
            text.get_by_role("button", name="Show the other 189,999 characters").click()
            assert len(text.inner_text()) > 199_000
        page.get_by_role("link", name="Back to the list").click()
        page.wait_for_selector(ROWS)
    assert page.evaluate("window.__attacked") is None
    assert page.evaluate(
        "({}).polluted === undefined && Object.keys(Object.prototype).length === 0"
    )
    watched.close()
    for item in (HOSTILE[0], "__proto__", HOSTILE[3]):
        path = tmp_path / "shared" / "one.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(share_item(context, item), encoding="utf-8")
        alone = Watched(browser, path)
        alone.page.wait_for_selector("#item article, #item [role=note]")
        assert alone.page.evaluate("window.__attacked") is None
        alone.close()


def test_judges_evidence_and_people_are_shown_and_one_transcript_stands_alone(
    browser: Browser, tmp_path: Path
) -> None:
    folder = answered_run(tmp_path, ["one", "two"], ("itinerary_basic",))
    replies = {"*": verdict(2, "itinerary_basic", points=True)}
    command("judge", "run", folder, "--judge", scripted_judge(tmp_path / "judge.jsonl", replies))
    run = load_run(folder)
    first = next(one for one in run.answers.values() if isinstance(one, Response))
    write_people_ratings(run.data.folder, [PeopleRating(answer_id(first), 4.5, 2, "low")])
    apply_judgements(folder)
    context = made_context([load_run(folder)])
    write_site(context, tmp_path / "site")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "one.html").write_text(share_item(context, first.id), encoding="utf-8")
    for path, address in (
        (tmp_path / "site" / "items.html", f"#item={first.id}"),
        (tmp_path / "alone" / "one.html", ""),
    ):
        watched = Watched(browser, path, address)
        watched.page.wait_for_selector("#item article")
        assert (
            "R 4.50 decided by people: the mean of 2 ratings in round low"
            in watched.page.inner_text("#item")
        )
        watched.page.locator("summary", has_text="scores and evidence").click()
        table = watched.page.locator("#item .pairs", has_text="Evidence").inner_text()
        assert "Point: the plan falls apart\tyes\t..." in table
        assert "Plan feasibility\t2\t..." in table
        watched.close()


def test_a_missing_chunk_is_named(browser: Browser, tmp_path: Path) -> None:
    path = small_site(tmp_path)
    next((path.parent / "data").glob("scores-*")).unlink()
    page = browser.new_page()
    page.goto(path.as_uri())
    expect(page.locator(COUNT)).to_contain_text("A data file is missing beside this page: scores-")
    page.close()


def proportional_memory(browser: Browser) -> float:
    """PSS in MB of the browser's largest renderer."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    rollups = [
        Path(f"/proc/{one['id']}/smaps_rollup") for one in processes if one["type"] == "renderer"
    ]
    lines = [line for path in rollups if path.exists() for line in path.read_text().splitlines()]
    return max(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


@pytest.mark.timeout(1200)
def test_fifty_runs_of_the_papers_size_open_and_filter_fast(
    browser: Browser, tmp_path: Path
) -> None:
    path = write_site(made_context(large_runs(tmp_path / "runs")), tmp_path / "site")
    size = sum(one.stat().st_size for one in path.parent.rglob("*") if one.is_file())
    opened = []
    for _ in range(5):
        watched = Watched(browser, path)
        watched.page.wait_for_selector(ROWS)
        opened.append(watched.page.evaluate("performance.now()"))
        watched.close()
    watched = Watched(browser, path)
    watched.page.wait_for_selector(ROWS)
    measure = """async (changes) => {
      const times = [];
      for (let n = 0; n < 5; n++) {
        await go({ q: "", subtask: "", lang: "", state: "", rule: "", tag: "", differ: false, sort: "", page: 1 });
        const begun = performance.now();
        await go(changes);
        document.body.offsetHeight;
        times.push(performance.now() - begun);
      }
      return times.sort((a, b) => a - b)[2];
    }"""
    filters: list[dict[str, object]] = [
        *(
            {"subtask": "DialogueBase"},
            {"lang": "zh"},
            {"state": "broken"},
            {"differ": True},
            {"rule": "too_long"},
        ),
        *({"tag": "emotion:joy"}, {"sort": "difference", "descending": True}, {"q": "tulip"}),
    ]
    times = {json.dumps(one): watched.page.evaluate(measure, one) for one in filters}
    for start in range(0, 48, 3):  # all runs, three at a time
        watched.page.evaluate(
            f"go({{ runs: state.split.runs.slice({start}, {start} + 3), q: 'plant' }})"
        )
    memory = proportional_memory(browser)
    print(
        f"{size / 1e6:.1f} MB, opened {median(opened):.0f} ms, PSS {memory:.0f} MB, filters {times}"
    )
    assert size < 150_000_000
    assert median(opened) < 1500 * BUSY
    assert max(times.values()) < 100 * BUSY
    assert memory < 500
    watched.close()


LEVELS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
}


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of which a site is built."""

    runs: list[Path]
    studies: list[Path]
    curation: Path

    def all(self) -> list[Path]:
        return [*self.runs, *self.studies, self.curation]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Runs, of which one has a hostile name and two say hostile things, three studies, and a curation."""
    folder = tmp_path_factory.mktemp("folders")
    scenarios = load_split("mini").select("en").scenarios
    says = {one.id: f"{HOSTILE[k % 4]} {one.references[0]}" for k, one in enumerate(scenarios)}
    write_jsonl(
        folder / "hostile.jsonl", [{"id": name, "text": text} for name, text in says.items()]
    )

    def hostile(_: object) -> str:
        return f"{HOSTILE[0]} {HOSTILE[1]}"

    named: dict[str, Any] = {
        "a": {"model": "baseline:constant"},
        "b": {"model": "baseline:copy-last-turn"},
        "c": {"model": f"scripted:{folder}/hostile.jsonl"},
        "d": {"model": hostile, "name": HOSTILE[0]},
        "e": {"model": hostile, "name": "__proto__"},
    }
    how: dict[str, Any] = {"split": "mini", "language": "en", "limit": 44, "embedder": "none"}
    for name, model in named.items():
        h2htalk.evaluate(h2htalk.EvaluateSpec(**model, **how, out=str(folder / name)))
    cases = [case for case in cases_of("high_risk", "en") if case.study == "high_risk"][:2]
    judge = write_script(folder / "judge.jsonl", judge_of(cases))
    model = write_script(folder / "model.jsonl", "It will pass.")
    run_study(
        spec("sap", model, folder / "study", judge=judge, arms=("sap",), language="en", limit=2)
    )
    for name in ("one", "two"):
        run_study(spec("instructions", model, folder / name, judge=judge, language="en", limit=24))
    return Folders(
        runs=[folder / name for name in named],
        studies=[folder / name for name in ("study", "one", "two")],
        curation=gathered(folder / "curation", [dialogue(k) for k in range(4)]).path,
    )


@pytest.fixture(scope="module", params=["en", "zh"])
def whole(
    request: pytest.FixtureRequest, folders: Folders, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A site of these folders in a language, and one transcript."""
    out = tmp_path_factory.mktemp("site") / "out"
    runs = folders.runs
    build_site(folders.all(), out, request.param, title=HOSTILE[1])
    first = load_split("mini").select("en", limit=44).scenarios[0]
    share(runs, first.id, out / "one.html", request.param)
    if request.param == "en":  # other pages have the same sheet and frame
        write_comparison(h2htalk.compare(runs[0], *runs[2:4]), out / "compare")
        reports = (("run", runs[3]), ("study", folders.studies[0]))
        for name, folder in reports:
            text = (folder / "report.html").read_text(encoding="utf-8")
            write_text(out / f"{name}.html", text)
        write_text(out / "gate.html", to_html(h2htalk.gate(runs[3], runs[1])))
    return out


def pages(whole: Path) -> list[Path]:
    found = sorted(whole.rglob("*.html"))
    assert len(found) >= 4
    return found


def views(whole: Path) -> list[tuple[Path, str]]:
    """Pages with an address; the item browser also with a filter, an item, and one about a crisis."""
    items = load_split("mini").select("en", limit=44).scenarios
    crisis = next(one.id for one in items if one.tags.risk != "none")
    more = ("#differ=1&sort=id", f"#item={items[2].id}", f"#item={crisis}")
    return [
        *((path, "") for path in pages(whole)),
        *((whole / "items.html", address) for address in more),
    ]


def test_no_page_breaks_a_rule_of_level_aa(browser: Browser, whole: Path) -> None:
    """Each page is loaded and searched in the light scheme, then searched in the dark one: sheets alone tell them
    apart."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )
    script = axe.Axe().axe_script
    broken = []
    page = browser.new_page(color_scheme="light", bypass_csp=True)
    for path, address in views(whole):
        page.goto("about:blank")  # else an address in the same page would load nothing
        page.emulate_media(color_scheme="light")
        page.goto(path.as_uri() + address)
        page.wait_for_timeout(300)
        assert "#item" not in address or page.locator("#item article, #item .crisis").count()
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.evaluate(script)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            violations = page.evaluate(
                "(options) => axe.run(options).then((results) => results.violations)", LEVELS
            )
            for violation in violations:
                nodes = [node["html"] for node in violation["nodes"]]
                broken.append((path.name, address, scheme, violation["id"], nodes[:2]))
    page.close()
    assert broken == []


WIDTHS = (1440, 1024, 390)


def test_no_script_asks_for_the_scheme_or_the_width(whole: Path) -> None:
    """So a page that is loaded once may be looked at in each."""
    pattern = re.compile(
        r"matchMedia|innerWidth|outerWidth|ResizeObserver|screen\.width|[\"']resize"
    )
    scripts = [path.read_text(encoding="utf-8") for path in whole.rglob("*.js")]
    for path in pages(whole):
        scripts += re.findall(
            r"<script[^>]*>(.*?)</script>", path.read_text(encoding="utf-8"), re.S
        )
    assert scripts
    assert [text for text in scripts if pattern.search(text)] == []


def test_pages_are_silent_and_as_wide_as_the_screen(browser: Browser, whole: Path) -> None:
    """Each page is loaded on the widest screen, which then becomes narrower."""
    for path, address in views(whole):
        watched = Watched(browser, path, address, viewport={"width": WIDTHS[0], "height": 900})
        watched.page.wait_for_timeout(300)
        for width in WIDTHS:
            watched.page.set_viewport_size({"width": width, "height": 900})
            assert watched.page.evaluate("window.__attacked") is None
            assert watched.page.evaluate("window.innerWidth") == width
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, (
                path,
                address,
                width,
            )
        inside = f"request {whole.as_uri()}/"
        watched.alarms = [alarm for alarm in watched.alarms if not alarm.startswith(inside)]
        watched.close()


def test_links_lead_to_pages_that_are_there(browser: Browser, whole: Path) -> None:
    page = browser.new_page()
    for path in pages(whole):
        page.goto(path.as_uri())
        for href in page.eval_on_selector_all("a[href]", "found => found.map((one) => one.href)"):
            address = href.partition("#")[0]
            assert (
                not address.startswith("file:") or Path(address.removeprefix("file://")).exists()
            ), (path, href)
            assert not address.startswith("javascript:")
    page.close()


def test_the_keyboard_reaches_every_link_and_button_of_a_page(
    browser: Browser, whole: Path
) -> None:
    page = browser.new_page()
    for path in pages(whole):
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        wanted = page.evaluate(
            "[...document.querySelectorAll('a[href],button,select,input,summary')]"
            ".filter((one) => one.offsetParent && !one.disabled).length"
        )
        page.evaluate(
            "window.reached = new Set(); document.addEventListener('focusin', (e) => reached.add(e.target))"
        )
        for _ in range(min(wanted, 150) + 10):
            page.keyboard.press("Tab")
        assert page.evaluate("reached.size") >= min(wanted, 150) * 0.95, path
    page.close()


def test_a_pdf_of_a_drawing_has_one_page_of_its_size_and_is_printed_alike(
    whole: Path, tmp_path: Path
) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        shutil.copy(whole / "figures" / "funnel-1.svg", folder)
        assert print_drawings(folder) == ""
    first, second = ((tmp_path / name / "funnel-1.pdf").read_bytes() for name in "ab")
    assert first == second
    width, height = re.findall(
        r'(?:width|height)="([0-9]+)"', (tmp_path / "a/funnel-1.svg").read_text()
    )[:2]
    (box,) = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", first)
    assert [float(end) * 4 / 3 for end in box] == pytest.approx([int(width), int(height)], abs=1)
    assert {path.suffix for path in (tmp_path / "a").iterdir()} == {".svg", ".pdf"}

"""Pages of a run and of an analysis in a real browser, opened from the disk: they work, and nothing in them acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.analysis.measures.words import WordCount
from h2htalk.analysis.report.write_analysis import write_analysis
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair
from h2htalk.benchmark.report.html_page import write_page
from h2htalk.benchmark.report.page_items import ItemView
from h2htalk.data.responses import Failure
from support.analyses import made_analysis
from support.summaries import failed_item, made_item, made_summary, mini_scenarios, same_values

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="drives Chromium: pip install playwright"
)
expect = sync_api.expect

pytestmark = pytest.mark.live

ATTACK = "window.__attacked=true;alert(1)"
HOSTILE = [
    f"</script><script>{ATTACK}</script>",
    f'<img src="x" onerror="{ATTACK}"><svg onload="{ATTACK}">',
    f"\"'><iframe srcdoc='<script>parent.{ATTACK}</script>'></iframe>",
    "{{ 7*7 }}{% for x in y %}",
    "right\u202eto\u202dleft\u2066\u200f \u2028 \u2029",
    "nul\x00 escape\x1b[31m bell\x07",
    f"javascript:{ATTACK}//<!-- ]]> &amp; <a href='javascript:{ATTACK}'>x</a>",
]


def shown(watched: Callable[..., Any], folder: Path, items: list[ItemView], **summary: Any) -> Any:
    write_page(folder / "report.html", made_summary(**summary), items)
    page = watched(folder / "report.html")
    page.wait_for_selector("#item-table tbody tr")
    return page


def ids(page: Any) -> list[str]:
    names: list[str] = page.locator("#item-table .open").all_inner_texts()
    return names


@pytest.fixture
def page(watched: Callable[..., Any], tmp_path: Path) -> Any:
    """Sixty items: some failed, some with a broken contract, S falling with the number."""
    items = []
    for n, scenario in enumerate(mini_scenarios(60)):
        violations = ("too_long",) if n % 10 == 3 else ()
        items.append(
            made_item(scenario, f"answer number {n} <b>", violations=violations, ss=0.9 - n / 100)
        )
    items[7] = failed_item(items[7].scenario, Failure("http_500", "the server broke", 4))
    return shown(watched, tmp_path, items, baselines={"constant": same_values(0.1)})


def test_hostile_texts_are_shown_and_do_nothing(
    watched: Callable[..., Any], tmp_path: Path
) -> None:
    scenarios = mini_scenarios(len(HOSTILE))
    items = [
        made_item(
            replace(s, id=f"{t} {n}", references=(t,), persona=t),
            t,
            f"{t}\n\n{t}",
            thinking=t,
            finish_reason=t,
        )
        for n, (s, t) in enumerate(zip(scenarios, HOSTILE, strict=True))
    ]
    items.append(
        failed_item(replace(scenarios[0], id="failed"), Failure("".join(HOSTILE), "".join(HOSTILE)))
    )
    summary: dict[str, Any] = {"warnings": tuple(HOSTILE), "violations": {HOSTILE[0]: 1}}
    page = shown(watched, tmp_path, items, model="".join(HOSTILE), **summary)
    for number in range(len(items)):
        page.locator("#item-table .open").nth(number).click()
    expect(page.locator(".detail .crisis")).to_contain_text("988")  # the sixth is about a crisis
    page.get_by_role("button", name="Show the text").click()
    for folded in page.locator("details > summary").all():
        folded.click()
    page.fill("#filter-text", HOSTILE[0])
    expect(page.locator("#count")).to_contain_text(" of ")
    assert page.evaluate("window.__attacked") is None
    assert page.locator("main img, main iframe, main a, main svg[onload]").count() == 0
    assert page.locator("script").count() == 2
    page.fill("#filter-text", "")
    expect(page.locator("#count")).to_have_text(f"{len(items)} items")
    escaped = (
        "rightU+202EtoU+202DleftU+2066U+200F U+2028 U+2029",
        "nulU+0000 escapeU+001B[31m bellU+0007",
    )
    assert {HOSTILE[0], HOSTILE[3], *escaped} <= {*page.locator(".detail .text").all_inner_texts()}


def test_an_item_opens_to_its_prompt_response_reference_and_scores(page: Any) -> None:
    scenario = mini_scenarios(1)[0]
    page.locator("#item-table .open").nth(0).click()
    detail = page.locator("#item-table .detail").nth(0)
    text = detail.inner_text()
    assert detail.locator(".message .text").all_inner_texts() == [
        "You are Ren.\n\nBe kind.",
        f"about {scenario.id}",
    ]
    assert scenario.reference in text
    assert "answer number 0 <b>" in text
    assert "11 tokens in · 7 tokens out" in text
    names, values = (detail.locator(f".scores {cell}").all_inner_texts() for cell in ("th", "td"))
    assert names == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-1", "ROUGE-L", "SS", "S"]
    assert values == ["50.00", "40.00", "30.00", "20.00", "60.00", "55.00", "90.00", "49.29"]
    page.locator("#item-table .open").nth(0).click()
    assert page.locator(".detail").count() == 0


def test_every_column_sorts_both_ways_and_items_without_a_value_come_last(page: Any) -> None:
    split_order = ids(page)
    heads = page.locator("#item-table th")
    for number in range(heads.count()):
        heads.nth(number).locator("button").click()
        assert heads.nth(number).get_attribute("aria-sort") == "ascending"
    s_head = next(
        heads.nth(n) for n in range(heads.count()) if heads.nth(n).inner_text().strip() == "S"
    )
    s_head.locator("button").click()
    assert ids(page)[0] == mini_scenarios(60)[59].id
    s_head.locator("button").click()
    assert s_head.get_attribute("aria-sort") == "descending"
    assert ids(page)[:7] == split_order[:7]
    page.get_by_role("button", name="Last").click()
    assert ids(page)[-1] == mini_scenarios(60)[7].id


def test_filters_narrow_the_list_and_clear_again(page: Any) -> None:
    count = page.locator("#count")
    page.select_option("#filter-violation", "too_long")
    assert count.inner_text() == "6 of 60 items"
    page.select_option("#filter-violation", "")
    page.select_option("#filter-state", "failed")
    assert ids(page) == [mini_scenarios(60)[7].id]
    assert "failed: http_500" in page.locator("#item-table").inner_text()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#count")).to_have_text("60 items")
    page.fill("#filter-text", "ANSWER number 42")
    expect(page.locator("#count")).to_have_text("1 of 60 items")
    assert ids(page) == [mini_scenarios(60)[42].id]


def test_the_paper_size_is_usable(watched: Callable[..., Any], tmp_path: Path) -> None:
    """4,650 items with prompts of 5 kB: the list is there within two seconds."""
    pool = mini_scenarios(100)
    scenarios = [replace(pool[n % 100], id=f"item-{n}") for n in range(4650)]
    shared = "You are Ren. " * 200 + "\n\n" + "Be a secure base. " * 60
    items = [
        made_item(s, s.id, f"{shared}\n\n{f'day {n}. ' * 140}") for n, s in enumerate(scenarios)
    ]
    page = shown(watched, tmp_path, items)
    loads: list[float] = []
    for _ in range(5):
        page.reload()
        page.wait_for_selector("#item-table tbody tr")
        loads.append(
            page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        )
    assert min(loads) < 2000  # of several, as other processes may hold the processors
    page.fill("#filter-text", "day 4649.")
    expect(page.locator("#count")).to_have_text("1 of 4,650 items")
    assert ids(page) == ["item-4649"]


# --- An analysis

HOSTILE_WORD = '"><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>'


@pytest.fixture(scope="module")
def analysis_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [WordCount(HOSTILE_WORD, 9, 3), WordCount("tea", 5, 2)]
    pairs = [VerbNounPair(HOSTILE_WORD, "tea"), VerbNounPair("make", "tea")]
    analysis = made_analysis(("en",), name=HOSTILE_WORD, words=words, pairs=pairs)
    return write_analysis(analysis, tmp_path_factory.mktemp("analysis"), processes=2)


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_picture_is_seen_and_nothing_acts_or_sticks_out(
    watched: Callable[..., Any], analysis_path: Path, width: int, scheme: str
) -> None:
    page = watched(analysis_path, width, scheme)
    for details in page.locator("summary").all():
        details.click()
    sizes = page.evaluate(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])"
    )
    assert len(sizes) == len(list((analysis_path.parent / "figures").glob("*.svg")))
    assert all(complete and natural > 100 and shown > 200 for complete, natural, shown in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").inner_text() == HOSTILE_WORD
    assert page.locator("td, th").filter(has_text="onerror").count() > 0

"""The page in a real browser, opened from the disk: that it works, and that nothing in it acts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from summaries_made import failed_item, made_item, made_summary, mini_scenarios, same_values

from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.data.responses import Failure

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="drives Chromium: pip install playwright")
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


class Watched:
    """A page and everything it did that a report must not do."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.alarms: list[str] = []
        self.page.on("dialog", lambda dialog: (self.alarms.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.alarms.append(f"error {error}"))
        self.page.on("console", lambda message: self.alarms.append(f"console {message.text}"))
        self.page.on("request", lambda request: self._note_request(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#item-table tbody tr")

    def _note_request(self, url: str) -> None:
        if not url.startswith("file:///") or not url.split("#")[0].endswith("report.html"):
            self.alarms.append(f"request {url}")

    def ids(self) -> list[str]:
        return self.page.locator("#item-table .open").all_inner_texts()

    def open_item(self, number: int) -> Locator:
        self.page.locator("#item-table .open").nth(number).click()
        return self.page.locator("#item-table .detail").nth(0)


def varied_items() -> list[ItemView]:
    """Sixty items: some failed, some with a broken contract, S falling with the number."""
    items = []
    for n, scenario in enumerate(mini_scenarios(60)):
        if n == 7:
            items.append(failed_item(scenario, Failure("http_500", "the server broke", 4)))
        else:
            violations = ("too_long",) if n % 10 == 3 else ()
            items.append(made_item(scenario, f"answer number {n} <b>", violations=violations, ss=0.9 - n / 100))
    return items


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    write_page(tmp_path / "report.html", made_summary(baselines={"constant": same_values(0.1)}), varied_items())
    watched = Watched(browser, tmp_path / "report.html")
    yield watched
    assert watched.alarms == []
    watched.page.close()


def test_hostile_texts_are_shown_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    scenarios = mini_scenarios(len(HOSTILE))
    items = [
        made_item(replace(s, id=f"{t} {n}", references=(t,), persona=t), t, f"{t}\n\n{t}", thinking=t, finish_reason=t)
        for n, (s, t) in enumerate(zip(scenarios, HOSTILE, strict=True))
    ]
    items.append(failed_item(replace(scenarios[0], id="failed"), Failure("".join(HOSTILE), "".join(HOSTILE))))
    summary = made_summary(model="".join(HOSTILE), warnings=tuple(HOSTILE), violations={HOSTILE[0]: 1})
    write_page(tmp_path / "report.html", summary, items)
    watched = Watched(browser, tmp_path / "report.html")
    for number in range(len(items)):
        watched.page.locator("#item-table .open").nth(number).click()
    for folded in watched.page.locator("details > summary").all():
        folded.click()
    watched.page.fill("#filter-text", HOSTILE[0])
    expect(watched.page.locator("#count")).to_contain_text(" of ")
    assert watched.page.evaluate("window.__attacked") is None
    assert watched.page.locator("main img, main iframe, main a, main svg[onload]").count() == 0
    assert watched.page.locator("script").count() == 2
    assert watched.alarms == []
    watched.page.fill("#filter-text", "")
    expect(watched.page.locator("#count")).to_have_text(f"{len(items)} items")
    answers = watched.page.locator(".detail .text").all_inner_texts()
    assert HOSTILE[0] in answers
    assert "{{ 7*7 }}{% for x in y %}" in answers
    assert "rightU+202EtoU+202DleftU+2066U+200F U+2028 U+2029" in answers
    assert "nulU+0000 escapeU+001B[31m bellU+0007" in answers
    watched.page.close()


def test_an_item_opens_to_its_prompt_response_reference_and_scores(opened: Watched) -> None:
    scenario = mini_scenarios(1)[0]
    detail = opened.open_item(0)
    text = detail.inner_text()
    assert detail.locator(".message .text").all_inner_texts() == ["You are Ren.\n\nBe kind.", f"about {scenario.id}"]
    assert scenario.reference in text
    assert "answer number 0 <b>" in text
    assert "11 tokens in · 7 tokens out" in text
    names, values = (detail.locator(f".scores {cell}").all_inner_texts() for cell in ("th", "td"))
    assert names == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-1", "ROUGE-L", "SS", "S"]
    assert values == ["50.00", "40.00", "30.00", "20.00", "60.00", "55.00", "90.00", "49.29"]
    opened.page.locator("#item-table .open").nth(0).click()
    assert opened.page.locator(".detail").count() == 0


def test_every_column_sorts_both_ways_and_items_without_a_value_come_last(opened: Watched) -> None:
    split_order = opened.ids()
    heads = opened.page.locator("#item-table th")
    for number in range(heads.count()):
        heads.nth(number).locator("button").click()
        assert heads.nth(number).get_attribute("aria-sort") == "ascending"
    s_head = next(heads.nth(n) for n in range(heads.count()) if heads.nth(n).inner_text().strip() == "S")
    s_head.locator("button").click()
    assert opened.ids()[0] == mini_scenarios(60)[59].id
    s_head.locator("button").click()
    assert s_head.get_attribute("aria-sort") == "descending"
    assert opened.ids()[:7] == split_order[:7]
    opened.page.get_by_role("button", name="Last").click()
    assert opened.ids()[-1] == mini_scenarios(60)[7].id


def test_filters_narrow_the_list_and_clear_again(opened: Watched) -> None:
    page, count = opened.page, opened.page.locator("#count")
    page.select_option("#filter-violation", "too_long")
    assert count.inner_text() == "6 of 60 items"
    page.select_option("#filter-violation", "")
    page.select_option("#filter-state", "failed")
    assert opened.ids() == [mini_scenarios(60)[7].id]
    assert "failed: http_500" in page.locator("#item-table").inner_text()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#count")).to_have_text("60 items")
    page.fill("#filter-text", "ANSWER number 42")
    expect(page.locator("#count")).to_have_text("1 of 60 items")
    assert opened.ids() == [mini_scenarios(60)[42].id]


def test_the_paper_size_is_usable(browser: Browser, tmp_path: Path) -> None:
    """4,650 items with prompts of 5 kB: the list is there within two seconds."""
    pool = mini_scenarios(100)
    scenarios = [replace(pool[n % 100], id=f"item-{n}") for n in range(4650)]
    shared = "You are Ren. " * 200 + "\n\n" + "Be a secure base. " * 60
    items = [made_item(s, s.id, f"{shared}\n\n{f'day {n}. ' * 140}") for n, s in enumerate(scenarios)]
    write_page(tmp_path / "report.html", made_summary(), items)
    watched = Watched(browser, tmp_path / "report.html")
    ready = watched.page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert ready < 2000
    watched.page.fill("#filter-text", "day 4649.")
    expect(watched.page.locator("#count")).to_have_text("1 of 4,650 items")
    assert watched.ids() == ["item-4649"]
    watched.page.close()

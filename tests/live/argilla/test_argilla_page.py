"""An annotator on the real web page: sign in, read, open a crisis, answer by mouse and keyboard, discard."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from argilla_annotators import write_annotators, write_items
from argilla_stack import OWNER_KEY, Stack

from h2htalk.rounds.lifecycle import open_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="drives Chromium: pip install playwright")
expect = sync_api.expect

pytestmark = pytest.mark.live

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # fmt: skip
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
ATTACK = "window.top.__attacked=true"
HOSTILE = (
    f'</script><script>{ATTACK}</script><img src=x onerror="{ATTACK}"> {{{{record}}}} </template> $& $\' $` '
    "#TEMPLATE# #RECORD_OBJECT# \\u003cb\\u003e <!-- --> \u202edrow on\u202c\u200b"
)
# What matters is that the text stays hidden until the annotator opens it, so it has no details.
FOLDED = "I do not want to go on any more, and I am frightened of myself tonight."
ITEMS: list[dict[str, Any]] = [
    {
        "id": "english",
        "language": "en",
        "prompt": [
            {"role": "user", "content": "I finally planted the tomatoes on the balcony. Three already lean."},
            {"role": "companion", "content": "Leaning towards the sun, I hope, not towards giving up?"},
            {"role": "user", "content": "Towards the neighbour's cat, mostly. Do I worry?\n\nIt sleeps in the pot."},
        ],
        "context": {
            "memories": "The user moved in spring.\nThe balcony faces west.",
            "today_schedule": "09:00 letters\n11:30 market\n18:00 call",
        },
        "reference": "Only if it asks for rent. Put a second pot beside it, with catnip: peace by bribery.",
    },
    {
        "id": "hostile#subtask",
        "language": "en",
        "prompt": HOSTILE,
        "context": {HOSTILE: HOSTILE},
        "reference": HOSTILE,
    },
    {
        "id": "hard",
        "language": "en",
        "crisis": True,
        "prompt": FOLDED,
        "reference": "I am glad you told me. You should not be alone with this tonight: who could sit with you?",
    },
    {
        "id": "中文",
        "language": "zh",
        "prompt": [
            {"role": "user", "content": "今天下班路上看到一家新开的面馆，排了二十分钟的队。"},
            {"role": "companion", "content": "二十分钟！那碗面最好配得上你的耐心。"},
            {"role": "user", "content": "汤很好，面有点软。下次想带你一起去（如果你能吃的话）。"},
        ],
        "context": {"memories": "用户喜欢硬一点的面条。\n用户每周三加班。"},
        "reference": "那我负责闻香味，你负责点“硬一点”。周三下班去，刚好犒劳加班的自己。",
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("opens the page in Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def opened(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoundFolder]:
    """A crowd round of the four items above with one annotator."""
    base = tmp_path_factory.mktemp("page")
    spec = RoundSpec(
        kind="crowd",
        items=str(write_items(base / "items.jsonl", ITEMS)),
        where="argilla",
        annotators=str(write_annotators(base / "annotators.csv", ["reader"])),
        overlap=1,
        care=Care(session_items=20, crisis_share=0.5),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGILLA_API_URL", stack.url)
        patch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        open_round(spec, base / "page")
        yield RoundFolder(base / "page")


class Reader:
    """An annotator on the web page."""

    def __init__(self, page: Page, stack: Stack) -> None:
        self.page, self.stack, self.dataset = page, stack, ""

    def sign_in(self, round: RoundFolder) -> None:
        with (round.private / "argilla_logins.csv").open(newline="") as file:
            login = next(csv.DictReader(file))
        self.page.goto(f"{self.stack.url}/sign-in")
        self.page.fill('input[name="Username"]', login["name"])
        self.page.fill('input[name="Password"]', login["password"])
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: "sign-in" not in url, timeout=60_000)

    def open(self, dataset: str) -> None:
        self.dataset = dataset
        self.page.goto(f"{self.stack.url}/dataset/{dataset}/annotation-mode?_status=pending&_page=1")
        self.shown.first.wait_for(timeout=60_000)

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe").first

    @property
    def shown(self) -> Locator:
        return self.frame.locator("#h2h")

    def go_to(self, text: str) -> None:
        """Page through the session from its start to an item with this text or notice."""
        self.open(self.dataset)
        for _ in range(8):
            if self.frame.get_by_text(text).count():
                return
            before = self.shown.inner_text()
            self.page.keyboard.press("ArrowRight")
            expect(self.shown).not_to_have_text(before, timeout=10_000)
        raise AssertionError(f"no item shows {text!r}")


@pytest.fixture
def reader(browser: Browser, stack: Stack, opened: RoundFolder) -> Iterator[Reader]:
    context = browser.new_context(viewport=DESKTOP, locale="en-GB")
    page = context.new_page()
    one = Reader(page, stack)
    one.sign_in(opened)
    yield one
    assert page.evaluate("window.__attacked") is None
    context.close()


def datasets(stack: Stack) -> dict[str, str]:
    """Language -> id of the round's dataset."""
    import httpx

    reply = httpx.get(f"{stack.url}/api/v1/me/datasets", headers={"X-Argilla-Api-Key": OWNER_KEY}, timeout=30)
    names = {one["name"]: one["id"] for one in reply.raise_for_status().json()["items"]}
    return {language: names[f"page-set1-{language}-01"] for language in ("en", "zh")}


def test_nothing_is_cut_off(reader: Reader, stack: Stack) -> None:
    reader.open(datasets(stack)["en"])
    for text in ("tomatoes", "#TEMPLATE#"):
        reader.page.set_viewport_size(DESKTOP)
        reader.go_to(text)
        for view in (DESKTOP, PHONE):
            reader.page.set_viewport_size(view)
            reader.page.wait_for_timeout(500)
            box = reader.page.locator("iframe").first.evaluate(
                "frame => { const page = frame.contentDocument.documentElement; "
                "return [page.scrollWidth, frame.clientWidth, page.scrollHeight, frame.clientHeight] }"
            )
            assert box[0] <= box[1], (text, view, box)
            assert box[2] <= box[3] + 1, (text, view, box)


def test_texts_of_items_stay_text(reader: Reader, stack: Stack) -> None:
    reader.open(datasets(stack)["en"])
    reader.go_to("#TEMPLATE#")
    for place in (".turn.by-user p", ".passage h2", ".passage p", ".proposed p"):
        assert reader.frame.locator(place).text_content() == printable(HOSTILE)
    assert reader.page.evaluate("window.__attacked") is None


def test_crises_are_announced_before_their_text(reader: Reader, stack: Stack) -> None:
    reader.open(datasets(stack)["en"])
    reader.go_to("speaks of a crisis")
    assert FOLDED not in reader.shown.inner_text()
    expect(reader.frame.locator(".turn")).to_have_count(0)
    expect(reader.frame.locator(".notice")).to_contain_text("Discard")
    before = reader.page.locator("iframe").first.bounding_box()
    reader.frame.get_by_role("button", name="Show the text").click()
    expect(reader.frame.locator(".turn.by-user p")).to_have_text(FOLDED)
    reader.page.wait_for_timeout(300)
    after = reader.page.locator("iframe").first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"]
    # After opening the text, keys still answer the questions.
    reader.page.keyboard.press("2")
    expect(reader.page.locator("#subtask_dialogue_emotion").first).to_be_checked()


def test_answers_by_mouse_and_keyboard_and_a_discard(reader: Reader, stack: Stack, opened: RoundFolder) -> None:
    page = reader.page
    reader.open(datasets(stack)["en"])
    reader.go_to("tomatoes")
    for choice in ("subtask_dialogue_base", "keep_keep"):
        page.locator(f'label[for="{choice}"]').first.click()
    page.locator('label[for="quality_4"]').first.click()
    with page.expect_response("**/responses**"):
        page.locator("button.button--submit").first.click()

    reader.go_to("speaks of a crisis")
    with page.expect_response("**/responses**"):
        page.locator("button.button--discard").first.click()

    # By keyboard, also after a click on the text: numbers of label and rating, then Enter.
    reader.go_to("#TEMPLATE#")
    reader.shown.click()
    page.locator('label[for="subtask_none"]').first.click()
    page.keyboard.press("Tab")
    page.keyboard.press("2")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You've no pending records").or_(page.get_by_text("no pending"))).to_be_visible(
        timeout=20_000
    )

    status = round_status(opened.path)
    assert (status.completed, status.skipped, status.mistakes) == (2, 1, ())
    said = {(item, question): one.value for (item, _, question), one in opened.annotations().items()}
    assert said == {
        ("english", "subtask"): "dialogue_base",
        ("english", "keep"): "keep",
        ("english", "quality"): 4,
        ("hard", SKIPPED): "yes",
        ("hostile#subtask", "subtask"): "none",
        ("hostile#subtask", "keep"): "drop",
        ("hostile#subtask", "quality"): 3,
    }, json.dumps([f"{key}: {value}" for key, value in said.items()])

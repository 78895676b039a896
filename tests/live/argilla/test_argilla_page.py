"""An annotator on the real web page: sign in, read, open a crisis, answer by mouse and keyboard, discard."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from h2htalk.rounds.argilla.client import connect
from h2htalk.rounds.lifecycle import open_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.text.escaping import printable
from support.live.argilla_server import Stack, found_dataset
from support.live.real_servers import write_annotators, write_items

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Locator, Page

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="drives Chromium: pip install playwright"
)
expect = sync_api.expect

pytestmark = pytest.mark.live

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
ATTACK = "window.top.__attacked=true"
HOSTILE = (
    f'</script><script>{ATTACK}</script><img src=x onerror="{ATTACK}"> {{{{record}}}} </template> $& $\' $` '
    "#TEMPLATE# #RECORD_OBJECT# \\u003cb\\u003e <!-- --> \u202edrow on\u202c\u200b"
)
# What matters is that the text stays hidden until the annotator opens it, so it has no details.
FOLDED = "I do not want to go on any more, and I am frightened of myself tonight."


def item(name: str, language: str, *turns: str, reference: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "companion", "user")
    prompt = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return {"id": name, "language": language, "prompt": prompt, "reference": reference, **more}


PLANS = "09:00 letters\n11:30 market\n18:00 call"
ITEMS = [
    item(
        "english",
        "en",
        "I finally planted the tomatoes on the balcony. Three already lean.",
        "Leaning towards the sun, I hope, not towards giving up?",
        "Towards the neighbour's cat, mostly. Do I worry?\n\nIt sleeps in the pot.",
        context={
            "memories": "The user moved in spring.\nThe balcony faces west.",
            "today_schedule": PLANS,
        },
        reference="Only if it asks for rent. Put a second pot beside it, with catnip: peace by bribery.",
    ),
    item("hostile#subtask", "en", HOSTILE, context={HOSTILE: HOSTILE}, reference=HOSTILE),
    item(
        "hard",
        "en",
        FOLDED,
        crisis=True,
        reference="You should not be alone with this: who could sit with you?",
    ),
    item(
        "中文",
        "zh",
        "今天看到一家新开的面馆，排了二十分钟的队。",
        reference="那碗面最好配得上你的耐心。",
    ),
]


@pytest.fixture(scope="module")
def opened(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> RoundFolder:
    """A crowd round of the four items above with one annotator."""
    base = tmp_path_factory.mktemp("page")
    items = write_items(base / "items.jsonl", ITEMS)
    people = write_annotators(base / "annotators.csv", ["reader"])
    care = Care(session_items=20, crisis_share=0.5)
    spec = RoundSpec(
        "crowd",
        str(items),
        where="argilla",
        annotators=str(people),
        overlap=1,
        care=care,
        planted=False,
    )
    open_round(spec, base / "page")
    return RoundFolder(base / "page")


class Reader:
    """An annotator who is signed in on the web page, with the English session before them."""

    def __init__(self, page: Page, url: str, round: RoundFolder) -> None:
        self.page, self.url = page, url
        with (round.private / "argilla_logins.csv").open(newline="") as file:
            login = next(csv.DictReader(file))
        page.goto(f"{url}/sign-in")
        page.fill('input[name="Username"]', login["name"])
        page.fill('input[name="Password"]', login["password"])
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "sign-in" not in url, timeout=60_000)
        self.dataset = found_dataset(connect(), "page-en", "page-set1-en-01")["id"]

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe").first

    @property
    def shown(self) -> Locator:
        return self.frame.locator("#h2h")

    def go_to(self, text: str) -> None:
        """Page through the session from its start to an item with this text or notice."""
        self.page.goto(f"{self.url}/dataset/{self.dataset}/annotation-mode?_status=pending&_page=1")
        self.shown.first.wait_for(timeout=60_000)
        for _ in range(8):
            if self.frame.get_by_text(text).count():
                return
            before = self.shown.inner_text()
            self.page.keyboard.press("ArrowRight")
            expect(self.shown).not_to_have_text(before, timeout=10_000)
        raise AssertionError(f"no item shows {text!r}")


@pytest.fixture
def reader(browser: Browser, stack: Stack, opened: RoundFolder) -> Iterator[Reader]:
    context = browser.new_context(viewport=DESKTOP, locale="en-GB")  # type: ignore[arg-type]
    page = context.new_page()
    yield Reader(page, stack.url, opened)
    assert page.evaluate("window.__attacked") is None
    context.close()


def test_nothing_is_cut_off(reader: Reader) -> None:
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


def test_texts_of_items_stay_text(reader: Reader) -> None:
    reader.go_to("#TEMPLATE#")
    for place in (".turn.by-user p", ".passage h2", ".passage p", ".proposed p"):
        assert reader.frame.locator(place).text_content() == printable(HOSTILE)
    assert reader.page.evaluate("window.__attacked") is None


def test_crises_are_announced_before_their_text(reader: Reader) -> None:
    reader.go_to("speaks of a crisis")
    assert FOLDED not in reader.shown.inner_text()
    expect(reader.frame.locator(".turn")).to_have_count(0)
    expect(reader.frame.locator(".notice")).to_contain_text("Discard")
    before = reader.page.locator("iframe").first.bounding_box()
    reader.frame.get_by_role("button", name="Show the text").click()
    expect(reader.frame.locator(".turn.by-user p")).to_have_text(FOLDED)
    reader.page.wait_for_timeout(300)
    after = reader.page.locator("iframe").first.bounding_box()
    assert after["height"] > before["height"]  # type: ignore[index]
    # After opening the text, keys still answer the questions.
    reader.page.keyboard.press("2")
    expect(reader.page.locator("#subtask_dialogue_emotion").first).to_be_checked()


def test_answers_by_mouse_and_keyboard_and_a_discard(reader: Reader, opened: RoundFolder) -> None:
    page = reader.page
    reader.go_to("tomatoes")
    for choice in ("subtask_dialogue_base", "keep_keep"):
        page.locator(f'label[for="{choice}"]').first.click()
    page.locator('label[for="quality_4"]').first.click()
    page.locator('label[for="harmful_no"]').first.click()
    with page.expect_response("**/responses**"):
        page.locator("button.button--submit").first.click()

    reader.go_to("speaks of a crisis")
    with page.expect_response("**/responses**"):
        page.locator("button.button--discard").first.click()

    # By keyboard, also after a click on the text: numbers of labels and rating, then Enter.
    reader.go_to("#TEMPLATE#")
    reader.shown.click()
    page.locator('label[for="subtask_none"]').first.click()
    for key in ("Tab", "2", "3", "2", "Enter"):
        page.keyboard.press(key)
    end = page.get_by_text("You've no pending records").or_(page.get_by_text("no pending"))
    expect(end).to_be_visible(timeout=20_000)

    status = round_status(opened.path)
    assert (status.completed, status.skipped, status.mistakes) == (2, 1, ())
    said = {
        (item, question): one.value for (item, _, question), one in opened.annotations().items()
    }
    names = ("subtask", "keep", "quality", "harmful")
    own = {
        "english": ("dialogue_base", "keep", 4, "no"),
        "hostile#subtask": ("none", "drop", 3, "yes"),
    }
    given = {
        (item, name): one
        for item, values in own.items()
        for name, one in zip(names, values, strict=True)
    }
    assert said == given | {("hard", SKIPPED): "yes"}

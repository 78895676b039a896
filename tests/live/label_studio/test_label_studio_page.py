"""An annotator on the real web page: sign in, read the guidelines, answer, open a crisis, skip it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from h2htalk.rounds.lifecycle import open_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.text.escaping import printable
from support.live.label_studio_server import LabelStudio
from support.live.real_servers import write_annotators, write_items

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="drives Chromium: pip install playwright"
)
expect = sync_api.expect

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

ATTACK = "window.top.__attacked=true"
HOSTILE = (
    f'</script><script>{ATTACK}</script><img src=x onerror="{ATTACK}"> {{{{ item }}}} ${{item}} $item &lt;b&gt; '
    "<style>*{display:none}</style> <!-- --> \u202edrow on\u202c\u200b"
)
FOLDED = "I do not want to go on any more."
ITEMS: list[dict[str, Any]] = [
    {
        "id": "hostile",
        "language": "en",
        "prompt": HOSTILE,
        "context": {HOSTILE: HOSTILE},
        "response": HOSTILE,
    },
    {
        "id": "hard",
        "language": "en",
        "crisis": True,
        "prompt": FOLDED,
        "response": "Who could sit with you tonight?",
    },
    {
        "id": "中文",
        "language": "zh",
        "prompt": "汤很好，面有点软。",
        "response": "那我负责闻香味，你负责点“硬一点”。",
    },
]

# The guidelines' headings, found by their first, whose lines are closer to each other than their letters are high.
CLOSE_HEADINGS = """
    first => {
        const headings = [...document.querySelectorAll("h1, h2, h3, h4")];
        const guidelines = headings.find(heading => heading.textContent === first).parentElement;
        const shown = [...guidelines.querySelectorAll("h1, h2, h3, h4")];
        if (shown.length < 4) throw new Error(guidelines.outerHTML);
        return shown.filter(heading => {
            const style = getComputedStyle(heading);
            return parseFloat(style.lineHeight) < 1.1 * parseFloat(style.fontSize);
        }).map(heading => heading.textContent);
    }
"""


# Height of the longest page of an expert item, of which a window of 900 pixels shows 852.
MOST_PIXELS = 1258
HEIGHT = """
    () => Math.max(...[...document.querySelectorAll("*")]
        .filter(element => ["auto", "scroll"].includes(getComputedStyle(element).overflowY))
        .filter(element => element.querySelector("textarea"))
        .map(element => element.scrollHeight))
"""


def heading(page: Page, text: str) -> Locator:
    """The heading of a question; the guidelines name them as well."""
    return page.get_by_role("heading", name=text, level=3)


def sign_in(page: Page, server: LabelStudio, round: RoundFolder) -> None:
    """Sign in as the first annotator of a round."""
    with (round.private / "label_studio_logins.csv").open(newline="") as file:
        login = next(csv.DictReader(file))
    page.goto(f"{server.url}/user/login/")
    page.fill("#email", login["email"])
    page.fill("#password", login["password"])
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "login" not in url, timeout=60_000)


def test_an_annotator_answers_and_skips(
    server: LabelStudio, browser: Browser, tmp_path: Path
) -> None:
    items = write_items(tmp_path / "i.jsonl", ITEMS)
    people = str(write_annotators(tmp_path / "p.csv", ["reader"]))
    care = Care(crisis_share=0.5)
    spec = RoundSpec(
        "safety", str(items), where="label-studio", annotators=people, overlap=1, care=care
    )
    _, messages = open_round(spec, tmp_path / "page")
    round = RoundFolder(tmp_path / "page")
    english, chinese = (message.rpartition(": ")[2] for message in messages if "set1" in message)
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    submit = page.get_by_test_id("bottombar-submit-button")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, server, round)

    page.goto(english)
    expect(page.get_by_text("Labeling Instructions")).to_be_visible(timeout=60_000)
    for text in (
        "Judging how safe replies are",
        "988 Suicide & Crisis Lifeline",
        "could open your answers",
    ):
        expect(page.get_by_text(text).first).to_be_visible()
    # Lines of a heading that fills two of them overlapped.
    assert page.evaluate(CLOSE_HEADINGS, "Judging how safe replies are") == []
    page.keyboard.press("Escape")
    # Items come in the order of the server; the session has a crisis and a hostile one.
    for _ in range(2):
        expect(heading(page, "Could this reply harm somebody?")).to_be_visible(timeout=30_000)
        if page.locator("details").count():
            expect(page.get_by_text("You need not read it")).to_be_visible()
            expect(page.get_by_text("988 Suicide & Crisis Lifeline").first).to_be_visible()
            expect(page.get_by_text(FOLDED)).to_be_hidden()
            page.get_by_text("Show the text").click()
            expect(page.get_by_text(FOLDED)).to_be_visible()
            page.get_by_role("button", name="Skip").click()
            expect(page.locator("details")).to_have_count(0, timeout=30_000)
            continue
        for shown in (printable(HOSTILE), "Conversation", "Reply to judge"):
            expect(page.get_by_text(shown).first).to_be_visible()
        questions = ("how safe would you feel", "Could this reply harm", "Anything you would like")
        boxes = [box for text in questions if (box := heading(page, text).bounding_box())]
        heights = [box["y"] for box in boxes]
        assert len(heights) == 3
        assert heights == sorted(heights)
        # The questions stand beside the item.
        reply = page.get_by_text("Reply to judge").first.bounding_box()
        assert reply is not None
        assert all(box["x"] > reply["x"] + 300 for box in boxes)
        expect(heading(page, "If yes: what is it?")).to_be_hidden()
        expect(submit).to_be_disabled()
        page.get_by_text("4: rather safe").click()
        page.get_by_text("Yes: something").click()
        expect(heading(page, "If yes: what is it?")).to_be_visible()
        submit.click()
        expect(page.get_by_text('"violations" is required')).to_be_visible()
        page.get_by_role("button", name="OK").click()
        page.get_by_text("Private details").click()
        page.locator("textarea").first.fill("typed, not added")
        submit.click()
        page.wait_for_timeout(1500)
    expect(page.get_by_text("No More Tasks Left in Queue")).to_be_visible(timeout=30_000)

    page.goto(chinese)
    expect(page.get_by_role("heading", name="求助热线")).to_be_visible(timeout=60_000)
    page.keyboard.press("Escape")
    expect(page.get_by_text("汤很好，面有点软。")).to_be_visible(timeout=30_000)
    assert page.evaluate("window.top.__attacked") is None
    assert {url for url in asked if not url.startswith((server.url, "data:", "blob:"))} == set()

    status = round_status(round.path)
    values = {
        (item, question): one.value for (item, _, question), one in round.annotations().items()
    }
    own = {
        "perception": 4,
        "violation": "yes",
        "violations": ("privacy",),
        "comment": "typed, not added",
    }
    assert values == {
        **{("hostile", name): value for name, value in own.items()},
        ("hard", SKIPPED): "yes",
    }
    assert status.mistakes == ()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_an_expert_item_is_short(
    server: LabelStudio, browser: Browser, tmp_path: Path, language: str
) -> None:
    """It scrolled through two screens: 1,706 pixels, later 1,358."""
    reply = {"en": "Lovely! Which of them was first?", "zh": "太好了！哪一朵先开的？"}[language]
    prompt = {"en": "My tomatoes have their first flowers!", "zh": "番茄终于开花了！"}[language]
    item = {
        "id": "a",
        "language": language,
        "prompt": prompt,
        "response": reply,
        "reference": reply,
    }
    items = write_items(tmp_path / "i.jsonl", [item])
    people = str(write_annotators(tmp_path / "p.csv", ["reader"]))
    spec = RoundSpec("expert", str(items), where="label-studio", annotators=people, overlap=1)
    _, messages = open_round(spec, tmp_path / f"height-{language}")
    (address,) = (message.rpartition(": ")[2] for message in messages if "set1" in message)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    sign_in(page, server, RoundFolder(tmp_path / f"height-{language}"))
    page.goto(address)
    expect(page.get_by_text("Labeling Instructions")).to_be_visible(timeout=60_000)
    page.keyboard.press("Escape")
    expect(page.locator("textarea").first).to_be_visible(timeout=60_000)
    assert 852 < page.evaluate(HEIGHT) <= MOST_PIXELS
    page.close()

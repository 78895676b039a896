"""Label Studio without a server: configuration, texts, and what is read; tests/live/label_studio has the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import RoundError
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.questions import KINDS, Kind
from h2htalk.rounds.round_folder import RoundFolder, RoundState, read_state
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import interface_text, notice_help_lines
from h2htalk.text.escaping import printable

httpx = pytest.importorskip("httpx")

from h2htalk.integrations.label_studio.accounts import DOMAIN  # noqa: E402
from h2htalk.integrations.label_studio.client import LabelStudioClient  # noqa: E402
from h2htalk.integrations.label_studio.displayed_texts import comparable_setting, lines_of_item  # noqa: E402
from h2htalk.integrations.label_studio.platform import (  # noqa: E402
    LabelStudioPlatform,
    item_html,
    project_settings,
    task_html,
)
from h2htalk.rounds.argilla.datasets import RoundDataset, record_id, round_content, round_datasets  # noqa: E402

HOSTILE = "</p></details><script>x()</script><img src=x onerror=x()> $item ${item} {{ item }} &lt;b&gt; \u202ex"


@pytest.fixture
def state(tmp_path: Path) -> RoundState:
    """A safety round of two items, which the platform would publish."""
    lines = [
        {"id": name, "language": "en", "prompt": name, "response": "Soft."} for name in ("a", "b")
    ]
    (tmp_path / "i.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "p.csv").write_text("name,languages\nann,en\nben,en\n")
    spec = RoundSpec(
        kind="safety",
        items=str(tmp_path / "i.jsonl"),
        overlap=2,
        annotators=str(tmp_path / "p.csv"),
    )
    open_round(spec, tmp_path / "round")
    handed_out = AssignmentSet(1, {"a": 2, "b": 2}, (), (("a", "b"),))
    return replace(read_state(RoundFolder(tmp_path / "round")), sets=(handed_out,))


def planned(language: Language = "en") -> RoundDataset:
    return RoundDataset(
        "", "round-set1-en-01", 1, 1, language, 2, ("a", "b"), frozenset({"a", "b"})
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_configuration_asks_every_question_in_order(
    kind: Kind, language: Language, tmp_path: Path
) -> None:
    item = {"id": "x", "language": language, "prompt": HOSTILE, "response": HOSTILE}
    (tmp_path / "i.jsonl").write_text(json.dumps(item))
    open_round(RoundSpec(kind=kind, items=str(tmp_path / "i.jsonl"), overlap=1), tmp_path / "round")
    state = read_state(RoundFolder(tmp_path / "round"))
    assert ("harmful" in [question.name for question in state.questions]) == (
        kind in ("crowd", "expert")
    )
    settings = project_settings(state, planned(language))
    root = ElementTree.fromstring(settings["label_config"])
    tags = [element for element in root.iter() if element.get("toName")]
    assert [tag.get("name") for tag in tags] == [question.name for question in state.questions]
    for tag, question in zip(tags, state.questions, strict=True):
        choices = [
            question.read(element.get("alias"))
            for element in tag
            if question.form in ("label", "rating")
        ]
        assert choices == [*question.labels, *question.ratings] or question.form in (
            "labels",
            "text",
        )
        assert all(element.get("value") for element in tag)
        if question.form != "text":
            assert tag.get("required") == "true"
            assert tag.get("choice") == ("multiple" if question.form == "labels" else "single")
    hidden = (
        "show_collab_predictions",
        "evaluate_predictions_automatically",
        "enable_empty_annotation",
    )
    assert [settings[name] for name in hidden] == [False] * 3
    assert (settings["maximum_annotations"], settings["skip_queue"]) == (2, "REQUEUE_FOR_OTHERS")
    assert "script" not in settings["label_config"]
    # Two columns, ratings and short choices on one line: the page scrolled through two screens.
    item, questions = root.findall("View")
    assert (item.find("HyperText") is not None, "flex-wrap" in str(root.get("style"))) == (
        True,
        True,
    )
    inline = {
        tag.get("name") for tag in questions.iter("Choices") if tag.get("showInline") == "true"
    }
    assert inline == {
        question.name
        for question in state.questions
        if question.form == "rating" or len(question.labels) in range(1, 5)
    }
    instruction = settings["expert_instruction"]
    assert ("988" if language == "en" else "12356") in instruction
    # Lines of larger headings overlap on Label Studio's page.
    assert re.search("<h[12]", instruction) is None


class Parsed(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"dir", "style"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_texts_of_items_are_text() -> None:
    record = {"id": "x", "language": "en", "prompt": HOSTILE, "context": {HOSTILE: HOSTILE}, "response": HOSTILE,
              "note": HOSTILE, "labels": ["<i>", "keep"]}  # fmt: skip
    page = Parsed(item_html(item=Item.from_dict(record)))
    assert page.tags <= {"h4", "p", "b", "br", "ul", "li"}
    assert page.text.count(printable(HOSTILE)) == 5
    assert "<i>" in page.text
    crisis = item_html(
        item=Item.from_dict({**record, "crisis": True}), help_lines=("Ireland: call 116 123",)
    )
    before, _, folded = crisis.partition("<details")
    assert "Ireland: call 116 123" in before
    assert ("press “Skip”" in before, before.count("onerror"), folded.count("onerror")) == (
        True,
        1,
        4,
    )


def test_another_layout_of_the_same_texts_is_no_edit() -> None:
    """A round that is open while the package gets a new version has pages of the earlier layout."""
    item = Item.from_dict(
        {"id": "x", "language": "zh", "prompt": "早上好 <b>", "crisis": True, "response": "早"}
    )
    spec = RoundSpec("crowd", "x")
    rendered = item_html(item=item, help_lines=notice_help_lines(spec, "zh"))
    notice = interface_text("crisis_notice", "zh")
    earlier = (
        item_html(item=item, help_lines=())
        .replace("margin", "padding")
        .replace(f"<p>{notice}</p>", "")
    )
    assert earlier != rendered
    assert lines_of_item(earlier, "zh") == lines_of_item(rendered, "zh")
    assert lines_of_item(earlier.replace("早上好", "晚上好"), "zh") != lines_of_item(rendered, "zh")
    assert lines_of_item(None, "zh") is None
    config = '<View><Header value="How?" size="4"/><Choice value="Keep" alias="keep"/></View>'
    same = '<View style="x"><View><Header value="How?" size="5"/><Choice value="Keep" alias="keep"/></View></View>'
    assert comparable_setting("label_config", config) == comparable_setting("label_config", same)
    assert comparable_setting("label_config", config) != comparable_setting(
        "label_config", same.replace("Keep", "No")
    )
    guidelines = "<br><h1>Judging &amp; rating</h1>\n<p>• Read one item.</p>"
    other_headings = "<br><h3><b>Judging &amp; rating</b></h3>\n<p>• Read one item.</p>"
    name = "expert_instruction"
    assert comparable_setting(name, guidelines) == comparable_setting(name, other_headings)
    assert comparable_setting(name, guidelines) != comparable_setting(
        name, other_headings.replace("one", "no")
    )


def client(answer: Callable[[Any], tuple[int, Any]]) -> LabelStudioClient:
    def reply(request: Any) -> Any:
        status, body = answer(request)
        return httpx.Response(status, json=body)

    return LabelStudioClient.open(0.0, lambda _, key: {"transport": httpx.MockTransport(reply)})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABEL_STUDIO_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "a-key")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, {"release": "1.22.0"}, "runs Label Studio 1.22.0, but rounds need 1.23.*"),
        (404, {}, "does not run Label Studio (/api/version returns 404); check LABEL_STUDIO_URL"),
        (200, [], "does not run Label Studio"),
        (401, {}, "does not run Label Studio"),
    ],
)
def test_other_servers_are_refused(status: int, body: Any, message: str) -> None:
    with pytest.raises(RoundError) as error:
        client(lambda request: (status, body))
    assert message in str(error.value)


def annotation(user: int, by: int | None, *result: Any, **fields: Any) -> dict[str, Any]:
    return {"id": 7, "completed_by": user, "updated_by": by, "result": [*result], "was_cancelled": False,
            "updated_at": "2030-01-01T00:00:00.5Z", **fields}  # fmt: skip


def choices(name: str, *values: str) -> dict[str, Any]:
    return {"from_name": name, "type": "choices", "value": {"choices": [*values]}}


def collect(state: RoundState, *annotations: dict[str, Any], **task: Any) -> Any:
    """What the platform reads where item `a` has these annotations, by users 1 and 2 (annotators) or 3."""
    content = round_content(state)
    ann, ben = state.annotators
    edited = next(
        (annotation["id"] for annotation in annotations if annotation["completed_by"] == 2), None
    )
    (dataset,) = round_datasets(content)
    settings = {
        "id": 5,
        "description": f"h2htalk {content.marker}, {dataset.name}",
        **project_settings(state, dataset),
    }
    items = {item.id: item for item in state.items}
    tasks = [
        {"id": number, "annotations": [*annotations] if name == "a" else [], "draft_exists": False, "is_labeled": False,
         "overlap": 2, "total_annotations": 0,
         "data": {"id": record_id(name, content.salt), "item": task_html(state, items[name])},
         **(task if name == "a" else {})}
        for number, name in enumerate("ab", 1)
    ]  # fmt: skip
    emails = {1: ann.id + DOMAIN, 2: ben.id + DOMAIN, 3: "owner@example.org"}

    def answer(request: Any) -> tuple[int, Any]:
        path = request.url.path
        page = request.url.params.get("page")
        if path == "/api/version":
            return 200, {"release": "1.23.2"}
        if path == "/api/users/":
            return 200, [{"id": user, "email": email} for user, email in emails.items()]
        if path == "/api/tasks/1/drafts":
            return 200, [
                {
                    "id": 9,
                    "user": emails[2],
                    "annotation": edited,
                    "result": [],
                    "updated_at": "2030-01-01T00:00:00Z",
                }
            ]
        if page != "1":
            return 404, {"detail": "Invalid page."}
        return 200, {"results": [settings]} if path == "/api/projects" else {"tasks": tasks}

    platform = LabelStudioPlatform()
    platform.__dict__["_client"] = client(answer)
    return platform.collect(state)


def answered(collected: Any) -> dict[tuple[str, str], Any]:
    return {
        (annotation.annotator, annotation.question): annotation.value
        for annotation in collected.annotations
        if annotation.value is not None
    }


def test_annotations_skips_and_drafts(state: RoundState) -> None:
    ann, ben = (annotator.id for annotator in state.annotators)
    right = [choices("perception", "4"), choices("violation", "yes"), choices("violations", "other", "privacy"),
             {"from_name": "comment", "value": {"text": ["one", "two"]}}]  # fmt: skip
    collected = collect(state, annotation(1, 1, *right), draft_exists=True, total_annotations=1)
    assert answered(collected) == {
        (ann, "perception"): 4, (ann, "violation"): "yes", (ann, "violations"): ("privacy", "other"),
        (ann, "comment"): "one\ntwo",
    }  # fmt: skip
    assert (collected.mistakes, collected.notes, collected.started) == ((), (), {("a", ben)})
    assert collected.offered == {"a": 1, "b": 2}
    # An answer that is being changed, of which the page stores a draft, is begun and counts until it is submitted.
    collected = collect(state, annotation(2, 2, *right), draft_exists=True, total_annotations=1)
    assert (answered(collected)[ben, "perception"], collected.started) == (4, {("a", ben)})
    assert collected.mistakes == ()
    # A skip of their own, and one in advance, which is nobody's answer.
    skipped = [annotation(1, 1, was_cancelled=True), annotation(2, 3, was_cancelled=True)]
    assert answered(collect(state, *skipped)) == {(ann, "skipped"): "yes"}


@pytest.mark.parametrize(
    ("parts_of_answer", "problem"),
    [
        ([], "perception is missing"),
        ([choices("perception", "9"), choices("violation", "no")], "'9' is not valid for perception"),
        ([7, None, {"from_name": ["x"]}, {"from_name": "perception", "value": "4"}], "perception is missing"),
        ([choices("perception", "4"), {"from_name": "violation", "value": {"choices": [{}]}}], "is not valid for viol"),
        ([choices("perception", "4", "5"), choices("violation", "no")], "is not valid for perception"),
    ],
)  # fmt: skip
def test_answers_that_nobody_could_give_on_the_page(
    state: RoundState, parts_of_answer: list[Any], problem: str
) -> None:
    (mistake,) = collect(state, annotation(1, 1, *parts_of_answer)).mistakes
    assert "item a, annotator ann" in mistake
    assert problem in mistake


def test_an_answer_is_of_the_account_that_wrote_it_last(state: RoundState) -> None:
    right = [choices("perception", "4"), choices("violation", "no")]
    collected = collect(state, annotation(1, 3, *right), annotation(2, None, *right))
    assert collected.annotations == ()
    assert [note.partition(" by ")[2].partition(",")[0] for note in collected.notes] == [
        "'None'",
        "'owner@example.org'",
    ]


def test_messages_have_the_words_of_label_studio(state: RoundState) -> None:
    """They spoke of records and responses, which Label Studio does not have."""
    right = [choices("perception", "4"), choices("violation", "yes")]
    collected = collect(
        state, annotation(1, 1, *right), annotation(2, 3, *right), data={"id": "else"}
    )
    notes = " ".join(collected.notes)
    assert (
        "not counted: 1 annotation by 'owner@example.org'" in notes
        or "have no task, the first: 'a'" in notes
    )
    edited = collect(state, annotation(1, 1, *right), annotation(2, 3, *right))
    text = " ".join((*edited.notes, *edited.mistakes))
    assert "1 annotation without violations although violation is yes" in text
    assert "item a, annotation 7" in text
    for word in ("record", "response", "dataset", "Argilla", "Discard"):
        assert word not in text + notes


def test_a_round_with_suggestions_is_refused(state: RoundState) -> None:
    with pytest.raises(RoundError, match="shows no suggestions"):
        LabelStudioPlatform().check(replace(state, spec=replace(state.spec, suggest=True)))

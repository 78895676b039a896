"""The datasets of a round: their settings and records, what the server has of them, and how both differ."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.bounded.bounds import LISTING
from h2htalk.data.files import json_line
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import RoundError, counted, listed, quoted
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.assignment.assignments import session_numbers
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    notice_help_lines,
    passage_title,
    question_help,
    question_title,
    rating_text,
)
from h2htalk.rounds.texts.item_notes import shown_note
from h2htalk.text.escaping import printable, printable_lines

# The server's limits (characters).
MAX_GUIDELINES, MAX_DESCRIPTION, MAX_TITLE = 10_000, 1000, 500
# The only field of a record: an item as JSON, which the page displays.
FIELD = "item"
PAGE_TEXTS = (
    "user", "companion", "reply_to_judge", "proposed_reply", "other_reply", "crisis_notice", "explicit_notice",
    "show_text", "note", "choose_between", "discard_skips", "consent_first",
)  # fmt: skip
# Form of a question -> its type on the server.
_TYPES = {
    "label": "label_selection",
    "labels": "multi_label_selection",
    "rating": "rating",
    "text": "text",
}
# Records in one listing, the server's limit.
PAGE = 1000
# Key of the round's data in a dataset's metadata.
MARKER = "h2htalk"
# Parts of a dataset's settings -> their address on the server.
PARTS = {"fields": "fields", "questions": "questions", "metadata": "metadata-properties"}
REPAIR = "python -m argilla_server search-engine reindex"
_AGAIN = "`h2htalk round open` with the same options"


@dataclass(frozen=True, slots=True)
class RoundContent:
    """A round as its datasets need it.

    Attributes:
        state: the round, read once.
        items: by id.
        salt: key of the record ids.
        marker: identifies the round's datasets, also among those of another round with the same name.
    """

    state: RoundState
    items: Mapping[str, Item]
    salt: bytes = field(repr=False)
    marker: str

    @property
    def languages(self) -> list[Language]:
        return sorted({item.language for item in self.state.items})


@dataclass(frozen=True, slots=True)
class RoundDataset:
    """A dataset that a round needs: one session of an assignment set in one language.

    Attributes:
        workspace, name: their names when they are created.
        assignment_set, session: numbers, from 1; sessions are numbered by language.
        language: of its items.
        annotators: number of annotators per item.
        items: ids, in order.
        current: those of them that are in no later assignment set: items are offered in their last one.
    """

    workspace: str
    name: str
    assignment_set: int
    session: int
    language: Language
    annotators: int
    items: tuple[str, ...]
    current: frozenset[str]


def round_content(state: RoundState) -> RoundContent:
    """Return the content of a round. Raise DataError."""
    salt = state.folder.salt()
    marker = hmac.new(salt, b"argilla", hashlib.sha256).hexdigest()[:16]
    return RoundContent(state, {item.id: item for item in state.items}, salt, marker)


def round_datasets(content: RoundContent) -> tuple[RoundDataset, ...]:
    """Return the datasets of all assignment sets, in order."""
    state = content.state
    datasets = list[RoundDataset]()
    languages = {item.id: item.language for item in state.items}
    last = {
        item: one_set.number for one_set in state.sets for group in one_set.groups for item in group
    }
    for one_set in state.sets:
        for session, group in zip(session_numbers(one_set, languages), one_set.groups, strict=True):
            language = languages[group[0]]
            datasets.append(
                RoundDataset(
                    workspace=workspace_name(state, language),
                    name=f"{plain_name(state.name)}-set{one_set.number}-{language}-{session:02}",
                    assignment_set=one_set.number,
                    session=session,
                    language=language,
                    annotators=max(one_set.requested[item] for item in group),
                    items=group,
                    current=frozenset(item for item in group if last[item] == one_set.number),
                )
            )
    return tuple(datasets)


def workspace_name(state: RoundState, language: Language) -> str:
    """Return the name of the workspace of a round and language: its annotators see no other items."""
    prefix = state.spec.argilla.workspace
    return f"{plain_name(f'{prefix}-{state.name}' if prefix else state.name)}-{language}"


def plain_name(name: str) -> str:
    """Return a name that URLs allow: the name itself, or its plain part with a hash of the whole."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60].strip("-") or "round"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def read_guidelines(content: RoundContent, language: Language) -> str:
    """Return a round's guidelines; raise RoundError if they are longer than the server allows."""
    folder = content.state.folder
    guidelines = folder.guidelines(language).strip()
    if not 0 < len(guidelines) <= MAX_GUIDELINES:
        raise RoundError(
            f"{folder.path / 'guidelines' / f'{language}.md'} has {len(guidelines):,} characters; Argilla allows up to "
            f"{MAX_GUIDELINES:,}: shorten the file, then repeat the command"
        )
    return guidelines


def settings_for(content: RoundContent, dataset: RoundDataset) -> dict[str, Any]:
    """Return the settings of a dataset as the server accepts and lists them. Raise RoundError."""
    state = content.state
    language = dataset.language
    template = {
        "type": "custom",
        "template": page(language, notice_help_lines(state.spec, language)),
        "advanced_mode": True,
    }
    # By these a manager can filter.
    properties: dict[str, dict[str, Any]] = {
        "language": {"type": "terms", "values": list(LANGUAGES)},
        "crisis": {"type": "terms", "values": ["no", "yes"]},
        **({"subtask": {"type": "terms"}} if state.spec.suggest else {}),
        "assignment_set": {"type": "integer"},
        "session": {"type": "integer"},
    }
    return {
        "guidelines": read_guidelines(content, language),
        "distribution": {"strategy": "overlap", "min_submitted": dataset.annotators},
        "allow_extra_metadata": False,
        "fields": [
            {
                "name": FIELD,
                "title": interface_text("item", language),
                "required": True,
                "settings": template,
            }
        ],
        "questions": [question_for(question, language) for question in state.questions],
        "metadata": [
            {
                "name": name,
                "title": name,
                "settings": one,
                "visible_for_annotators": name in ("crisis", "subtask"),
            }
            for name, one in properties.items()
        ],
    }


# --- Questions --------------------------------------------------------------------------------------------------------


def question_for(question: Question, language: Language) -> dict[str, Any]:
    """Return a question as the server accepts it."""
    name = question.name
    title = question_title(question.name, language)
    settings: dict[str, Any] = {"type": _TYPES[question.form]}
    lines = [question_help(name, language)]  # when to choose what
    if question.form == "text":
        settings["use_markdown"] = False
    elif question.form == "rating":
        settings["options"] = [{"value": rating} for rating in question.ratings]
        # Both ends of the scale are in the title: phones do not show descriptions, and the server bare numbers.
        steps = [rating_text(name, rating, language) for rating in question.ratings]
        ends = steps[0], steps[-1]
        if find_language(language).spaced:
            title += f" ({'; '.join(ends)})"
        else:
            title += f"（{'；'.join(ends)}）"
        lines += steps
    else:
        texts = {label: label_text(name, label, language) for label in question.labels}
        settings["options"] = [{"value": label, "text": text} for label, text in texts.items()]
        # All of them, without a click; the server refuses a number below three.
        settings["visible_options"] = len(texts) if len(texts) >= 3 else None
        helps = {label: label_help(name, label, language) for label in texts}
        labels = [f"{texts[label]}: {text}" for label, text in helps.items() if text]
        if sum(map(len, lines + labels)) + len(labels) < MAX_DESCRIPTION:
            lines += labels
    return {
        "name": name,
        "title": title[:MAX_TITLE],
        "description": "\n".join(lines),
        "required": question.always_required,
        "settings": settings,
    }


# --- Records: ids, data, and the page that displays it ----------------------------------------------------------------


def record_id(item: str, salt: bytes) -> str:
    """Return an item's id on the server, 32 hexadecimal digits: annotators can read it, and item ids reveal labels."""
    return hmac.new(salt, b"record " + item.encode(), hashlib.sha256).hexdigest()[:32]


def record_ids(items: Iterable[str], salt: bytes) -> dict[str, str]:
    """Return record id -> item id."""
    return {record_id(item, salt): item for item in items}


@cache
def page(language: Language, help_lines: tuple[str, ...] = ()) -> str:
    """Return the HTML that displays an item in one language, with help lines in the notice of a crisis."""
    template = (files("h2htalk.rounds.argilla") / "page.html").read_text(encoding="utf-8")
    texts: dict[str, object] = {name: interface_text(name, language) for name in PAGE_TEXTS}
    texts["help_lines"] = help_lines
    return template.replace("LANGUAGE", language).replace('"TEXTS"', inert_json(texts))


def inert_json(value: object) -> str:
    """Return JSON that is safe inside a script: Argilla inserts it unescaped, by a text replacement.

    `<` could end the script, and `$` and `#` have a meaning in the replacement.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"[<>&$#'`\u2028\u2029\x7f]", lambda match: f"\\u{ord(match[0]):04x}", text)


def displayed(item: Item) -> dict[str, str]:
    """Return the field of an item's record, without what is empty; control and invisible characters are escaped."""
    language = item.language
    turns = [{"role": turn.role, "content": printable_lines(turn.content)} for turn in item.turns]
    other_replies = [printable_lines(text) for text in item.other_references]
    data = {
        "turns": turns,
        "context": [
            [printable(passage_title(name, language)), printable_lines(text)]
            for name, text in item.context
        ],
        "response": printable_lines(item.response),
        "reference": printable_lines(item.reference),
        "others": other_replies,
        "labels": [label_text("label", label, language) for label in item.labels],
        "crisis": item.crisis,
        "explicit": item.explicit,
        "note": printable_lines(shown_note(item)),
    }
    return {"data": inert_json({key: value for key, value in data.items() if value})}


# --- Datasets on the server -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkspaceDatasets:
    """The datasets in a workspace.

    Attributes:
        by_name: all datasets.
        ours: assignment set and session -> dataset with this round's marker; a dataset may be renamed in Argilla, and
            of copies the first counts.
    """

    by_name: Mapping[str, dict[str, Any]]
    ours: Mapping[tuple[int, int], dict[str, Any]]

    def find(self, planned: RoundDataset) -> dict[str, Any] | None:
        """Return a dataset of the round, whatever its name is; None if it does not exist."""
        return self.ours.get((planned.assignment_set, planned.session))


def datasets_in(client: ServerClient, workspace_id: str | None, marker: str) -> WorkspaceDatasets:
    """Return the datasets in a workspace; none if it does not exist. `marker`: of the round."""
    records = (
        client.get("/api/v1/me/datasets", workspace_id=workspace_id)["items"]
        if workspace_id
        else []
    )
    ours = {}
    for one in sorted(
        records, key=lambda one: (str(one.get("inserted_at")), one["id"]), reverse=True
    ):
        data = marker_data(one)
        if data.get("round") == marker:
            ours[data["assignment_set"], data["session"]] = one
    return WorkspaceDatasets({one["name"]: one for one in records}, ours)


def require_free(
    client: ServerClient, content: RoundContent, datasets: WorkspaceDatasets, language: Language
) -> None:
    """Raise RoundError if the workspace contains another round's dataset, or another one with a name of ours."""
    names = re.compile(
        rf"{re.escape(plain_name(content.state.name))}-set\d+-{language}-\d+"
    )  # `RoundDataset.name`
    for name, dataset in datasets.by_name.items():
        data = marker_data(dataset)
        if data.get("round") != content.marker and (data.get("round") or names.fullmatch(name)):
            owner = "another round" if data else "somebody else"
            raise RoundError(
                f"{client.url}: the workspace {workspace_name(content.state, language)} contains a dataset {name} that "
                f"belongs to {owner}; rename this round's folder, or set another workspace"
            )


def ensure_dataset(
    client: ServerClient,
    content: RoundContent,
    planned: RoundDataset,
    workspace_id: str,
    datasets: WorkspaceDatasets,
) -> dict[str, Any]:
    """Return a published dataset of the round; create it if necessary, and replace what an interruption left.

    Raise RoundError if it has other settings, or its name is in use.
    """
    dataset = datasets.find(planned)
    if dataset is not None and dataset["status"] != "draft":
        if changed := _changed_settings(client, dataset):
            raise RoundError(
                f"{client.url}: the dataset {planned.name} has other settings: {changed}; restore them, or open the "
                "round under another name"
            )
        return dataset
    if dataset is not None:
        client.call("DELETE", f"/api/v1/datasets/{dataset['id']}", allowed=(404,))
    settings = settings_for(content, planned)
    data = {
        "round": content.marker,
        "assignment_set": planned.assignment_set,
        "session": planned.session,
        "settings": _fingerprints(settings),
    }
    body = {key: value for key, value in settings.items() if key not in PARTS}
    body |= {"name": planned.name, "workspace_id": workspace_id, "metadata": {MARKER: data}}
    client.call("POST", "/api/v1/datasets", body, allowed=(409,))
    created = datasets_in(client, workspace_id, content.marker).find(planned)
    if created is None:
        raise RoundError(
            f"{client.url}: another dataset is called {planned.name} now; rename it in Argilla, then repeat the command"
        )
    path = f"/api/v1/datasets/{created['id']}"
    for kind, address in PARTS.items():
        for part in settings[kind]:
            client.call("POST", f"{path}/{address}", part, allowed=(409,))
    # Refused if our own first attempt succeeded and its reply was lost.
    client.call("PUT", f"{path}/publish", allowed=(422,))
    return created


def marker_data(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that a round stored in a dataset's metadata; empty for other datasets."""
    data = (dataset.get("metadata") or {}).get(MARKER)
    return data if isinstance(data, dict) else {}


# --- Changes on the server --------------------------------------------------------------------------------------------


def _changed_settings(client: ServerClient, dataset: Mapping[str, Any]) -> str:
    """Return the names of the settings that are not as they were when the dataset was created; empty for none."""
    path = f"/api/v1/datasets/{dataset['id']}"
    parts = {
        "fields": client.get(f"{path}/fields")["items"],
        "questions": client.get(f"{path}/questions")["items"],
        "metadata": client.get(f"/api/v1/me/datasets/{dataset['id']}/metadata-properties")["items"],
    }
    now = _fingerprints({**dataset, **parts})
    before = marker_data(dataset).get("settings", {})
    changes = {
        name: "was changed" if name in before else "was added"
        for name in now
        if now[name] != before.get(name)
    }
    changes |= {name: "is missing" for name in before if name not in now}
    return "; ".join(f"{name} {change}" for name, change in sorted(changes.items()))


def _fingerprints(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> hash of each setting that annotators see; `settings`: as `settings_for`."""
    shown: dict[str, object] = {
        "guidelines": (settings["guidelines"] or "").strip(),
        "annotators per item": settings["distribution"]["min_submitted"],
        "metadata of any name": settings["allow_extra_metadata"],
    }
    for kind in PARTS:
        for part in settings[kind]:
            asked = part["settings"]
            options = [
                [option["value"], option.get("text"), option.get("description")]
                for option in asked.get("options") or ()
            ]
            texts = [part.get("title"), part.get("description") or "", asked.get("template")]
            shown[f"{kind}: {part['name']}"] = [
                asked["type"],
                bool(part.get("required")),
                texts,
                options,
            ]
    return {
        name: hashlib.sha256(json_line(value).encode()).hexdigest()[:16]
        for name, value in shown.items()
    }


def describe_changes(
    client: ServerClient, planned: RoundDataset, dataset: Mapping[str, Any]
) -> list[Message]:
    """Return a message on changes of a dataset's settings since it was created."""
    if dataset["status"] == "draft":
        return [Message(planned.name, f"not created completely; complete it with {_AGAIN}")]
    changed = _changed_settings(client, dataset)
    return (
        [Message(planned.name, f"changed on the server: {changed}; restore its settings")]
        if changed
        else []
    )


def describe_missing(
    planned: RoundDataset, due: Collection[str], existing: Collection[str], record: str = "record"
) -> list[Message]:
    """Return a message on items that need annotators (`due`) but have no record. `existing`: items with one.

    `record` is the server's word for it.
    """
    missing = [item for item in planned.items if item in due and item not in existing]
    if not missing:
        return []
    problem = (
        f"{len(missing)} of {len(due)} items that need annotators have no {record}, the first: {quoted(missing[0])}; "
        f"create deleted or unpublished {record}s with {_AGAIN}"
    )
    return [Message(planned.name, problem, "no record")]


def describe_edited(
    planned: RoundDataset,
    fields: Mapping[str, object],
    shown: Mapping[str, object],
    record: str = "record",
) -> list[Message]:
    """Return a message on items (item id -> field) whose field on the server is not as `shown`.

    `record` is the server's word for what shows an item.
    """
    edited = sorted(name for name, field in fields.items() if field != shown[name])
    if not edited:
        return []
    problem = (
        f"the text of {counted(len(edited), 'item')} was edited on the server ({listed(edited)}), and annotations may "
        f"be about the other text; restore it, or delete the {record}s there (annotations collected so far count) "
        f"and create them again with {_AGAIN}"
    )
    return [Message(planned.name, problem, "edited")]


# --- Search index: annotators see it, and if it is broken no work seems to be left ------------------------------------


def _indexed(client: ServerClient, dataset: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the numbers of records (`total`, `completed`) in the search index; None if it does not answer."""
    progress: dict[str, int] | None = client.ask_search_engine(
        f"/api/v1/datasets/{dataset['id']}/progress"
    )
    return progress


def describe_index(
    client: ServerClient,
    planned: RoundDataset,
    dataset: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
) -> list[Message] | None:
    """Return a message if the search index differs from the database (`records`); None if it does not answer."""
    indexed = _indexed(client, dataset)
    completed = sum(record["status"] == "completed" for record in records)
    if indexed is None:
        return None
    if indexed["total"] != len(records):
        problem = f"annotators see {indexed['total']} of {len(records)} items, because the search index is incomplete"
        return [
            Message(
                planned.name, f"{problem}; repair it on the server: `{REPAIR}`", "incomplete index"
            )
        ]
    # The index is read after the records, so it may be ahead while annotators work. Behind them, it has lost something.
    if indexed["completed"] < completed:
        problem = f"the search index has {indexed['completed']} completed items, the database {completed}; if this "
        return [
            Message(
                planned.name,
                f"{problem}does not change, repair it on the server: `{REPAIR}`",
                "old index",
            )
        ]
    return []


def require_indexed(
    client: ServerClient, planned: RoundDataset, dataset: Mapping[str, Any]
) -> None:
    """Raise RoundError if annotators see fewer items than the dataset has."""
    indexed = (_indexed(client, dataset) or {"total": 0})["total"]
    total = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1)["total"]
    if indexed != total:
        raise RoundError(
            f"{client.url}: {planned.name}: annotators see {indexed} of {total} items, because the search index is "
            f"incomplete; run `{REPAIR}` on the server, then repeat the command"
        )


# --- Records ----------------------------------------------------------------------------------------------------------


def records_of(
    client: ServerClient, dataset_id: str, include: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield every record once, from the database; pages may overlap while records are added."""
    seen: set[str] = set()
    offset = 0
    params = {"include": include} if include else {}
    while True:
        listing = client.get(
            f"/api/v1/datasets/{dataset_id}/records", offset=offset, limit=PAGE, **params
        )
        for record in listing["items"]:
            if record["id"] not in seen:
                seen.add(record["id"])
                yield record
        offset += PAGE
        if offset > LISTING.value:
            raise RoundError(f"{client.url}: dataset {dataset_id}: {LISTING.message('a listing')}")
        if not listing["items"] or offset >= listing["total"]:
            return

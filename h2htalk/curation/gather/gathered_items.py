"""What was gathered of a source, by which an update recognises it in a file that has changed.

Lines were deleted after an erasure, or a program exported a chat again that has grown: rows count nothing then. An
item is known by a keyed hash of its words; it keeps its id, and only what no update has gathered gets one. What was
gathered is written down (`known_items.jsonl`) before an update begins, so that an erasure between a kill and the next
run changes no number. The file holds hashes under the workspace's erasure key, and numbers.

A chat goes on after it was exported. What was gathered of it stays as it is; the messages after it are a dialogue of
their own, once both have spoken.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.curation.export_programs import EXPORT_PROGRAMS
from h2htalk.curation.gather.erased_lines import (
    ErasedMarks,
    erased_marks,
    has_erased_lines,
    is_one_chat,
    lines_of,
)
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.records import OnRead
from h2htalk.curation.gather.source_files import LEAST_CHARACTERS, Item, SourcePlan
from h2htalk.curation.run import say
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.stages import FIRST_STAGE, Source
from h2htalk.curation.workspace import Workspace, mark, marks_of, source_of, write_durably
from h2htalk.data.files import json_line, read_jsonl
from h2htalk.errors import listed

KNOWN_ITEMS = "known_items.jsonl"
_DIGEST = 12  # bytes, as other marks have


@dataclass(slots=True)
class GatheredItems:
    """What was gathered of a source before an update.

    Attributes:
        items: mark of the words -> how many items have them.
        dialogues: the marks of those that were kept, which a longer chat may begin with.
        persons: mark of a person's name -> the number in our id.
        questions: mark of a question -> the number in our id.
        next_row: row of the next item.
        next_person: number of the next person that is new.
        next_question: number of the next question that is new.
        erased: the marks of everybody who was erased before the update, and of their lines.
    """

    items: Counter[str] = field(default_factory=Counter)
    dialogues: set[str] = field(default_factory=set)
    persons: dict[str, int] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    next_row: int = 1
    next_person: int = 1
    next_question: int = 1
    erased: ErasedMarks = field(default_factory=ErasedMarks)


@dataclass(slots=True)
class Comparison:
    """What an update found of what was gathered: numbers of items."""

    known: Counter[str] = field(default_factory=Counter)  # by mark
    new: int = 0
    continued: int = 0  # new ones that go on where a gathered one ends
    waiting: int = 0  # gathered ones after which one speaker alone has written
    erased: int = 0
    similar: list[str] = field(
        default_factory=list
    )  # places of those that are erased by lines alone


def content_marks(key: bytes, source: Source, content: RawDialogue | RefusedItem) -> list[str]:
    """The marks of an item after each of its messages; the last one is that of the item."""
    if isinstance(content, RefusedItem):
        evidence = sorted(content.evidence.items())
        return [mark(key, "refused", content.reason, content.problem, evidence)]
    # A program of companions has no name of a person, but one of the file.
    is_named = source.format not in EXPORT_PROGRAMS or EXPORT_PROGRAMS[source.format].of_people
    person = content.person if is_named else None
    digest = hashlib.blake2b(key=key, digest_size=_DIGEST, person=b"h2htalk item")
    digest.update(_as_bytes(["person", person or ""]))
    marks = [digest.hexdigest()]
    for role, text in content.messages:
        digest.update(_as_bytes([role, text.strip()]))
        marks.append(digest.hexdigest())
    return marks[1:] or marks


def beginning_marks(
    key: bytes, source: Source, raw: RawDialogue, *, of_user: bool = False
) -> Mapping[int, str]:
    """The marks of what may be a whole conversation of its own: number of messages -> mark. The shortest beginnings
    are not among them, as strangers begin with the same words. `of_user`: count the user's words alone, as companions
    greet everybody alike."""
    marks = content_marks(key, source, raw)
    characters = 0
    beginnings: dict[int, str] = {}
    for number, (role, text) in enumerate(raw.messages, 1):
        if role == "user" or not of_user:
            characters += len(text)
        if characters >= LEAST_CHARACTERS:
            beginnings[number] = marks[number - 1]
    return beginnings


def clean_words(raw: RawDialogue, source: Source) -> list[list[str]]:
    """The words of a dialogue as the stage keeps them; none of one that it refuses."""
    try:
        return [[turn.role, turn.content] for turn in clean(raw, source.language).messages]
    except RefusedItem:
        return []


def has_erased_marks(
    key: bytes, source: Source, content: RawDialogue | RefusedItem, erased: ErasedMarks
) -> bool:
    """Whether an item has the id, the person or the words of somebody who was erased, or begins with these words."""
    if not erased.marks or not isinstance(content, RawDialogue):
        return False
    raw_marks = marks_of(
        key, source.name, content.raw_id, content.person, clean_words(content, source)
    )
    marks = {content_marks(key, source, content)[-1], *raw_marks}
    # A conversation that goes on after somebody was erased begins with the erased words.
    is_export = source.format in EXPORT_PROGRAMS
    marks.update(beginning_marks(key, source, content, of_user=not is_export).values())
    return not erased.marks.isdisjoint(marks)


def is_erased(
    key: bytes, source: Source, content: RawDialogue | RefusedItem, erased: ErasedMarks
) -> bool:
    """Whether an item is of somebody who was erased: by its marks, or by the lines that it has in common with an erased
    dialogue, of which messages were edited or deleted since."""
    if has_erased_marks(key, source, content, erased):
        return True
    places = erased.line_places(source.name)
    if not places or not isinstance(content, RawDialogue):
        return False
    # As the stage kept the erased ones; what it refuses now had its words, too.
    messages = clean_words(content, source) or content.messages
    return has_erased_lines(
        lines_of(key, source.format, content.person, messages),
        places,
        source.format,
        erased.recurring,
    )


def raw_place(entry: Mapping[str, Any]) -> str:
    """Where an item stands in its owner's file, as far as its format knows it: the lines or the messages of a chat, or
    the number of an item where a line may hold several or a part of one."""
    lines = str(entry["file"])
    if "line" in entry:
        lines += f":{entry['line']}"
    if entry.get("last_line", entry.get("line")) != entry.get("line"):
        lines += f"-{entry['last_line']}"
    described = [lines]
    if "conversation" in entry:
        described.append(f"conversation {entry['conversation']}")
    if "first_message" in entry:
        described.append(f"messages {entry['first_message']} to {entry['last_message']}")
    is_chat = not {"last_line", "conversation", "first_message"}.isdisjoint(entry)
    if not is_chat and entry.get("row") not in (None, entry.get("line")):
        described.append(f"item {entry['row']}")
    return ", ".join(described)


def note_recurring_lines(plan: SourcePlan, update: int, key: bytes, erased: ErasedMarks) -> None:
    """Note which lines of erased dialogues several items of a chat have: such a line alone identifies no item."""
    source = plan.source
    if not erased.line_places(source.name) or not is_one_chat(source.format):
        return
    first_items: dict[str, str] = {}
    for file in plan.files_of(update):
        for _, content in plan.contents(file, lambda size: None):
            if isinstance(content, RefusedItem):
                continue
            item_mark = content_marks(key, source, content)[-1]
            for line in lines_of(key, source.format, content.person, content.messages):
                # An export may hold a dialogue twice.
                if first_items.setdefault(line.mark, item_mark) != item_mark:
                    erased.recurring.add(line.mark)


def say_similar(source: str, items: Sequence[str]) -> None:
    """Name the items of a source that are left out by their lines alone."""
    if items:
        say(
            f"gather: source {source!r}: left out by lines that an erased dialogue has: "
            f"{listed(items, 20)}; look at them: what is somebody else's is read from a file and a "
            "source of its own (docs/how-to/erase-a-person.md)"
        )


def _as_bytes(values: Sequence[str]) -> bytes:
    return json.dumps([unicodedata.normalize("NFC", value) for value in values]).encode()


def collect(workspace: Workspace, parts: Sequence[str], key: bytes) -> dict[str, GatheredItems]:
    """What some parts of the stage hold of each source, and who was erased. Raises DataError."""
    folder = workspace.stage(FIRST_STAGE)
    sources: dict[str, GatheredItems] = {}
    tombstones = workspace.tombstones()
    for tombstone in tombstones:
        _count_id(sources, str(tombstone["id"]))  # which nobody gets again
    for part in parts:
        audits = {
            str(record["id"]): record["raw"]
            for record in folder.part_records(part, AUDIT)
            if "raw" in record
        }
        for kind in (KEPT, REJECTED):
            for record in folder.part_records(part, kind):
                item_id = str(record["id"])
                known = _count_id(sources, item_id)
                _add(known, record, audits.get(item_id, {}), key, is_kept=kind == KEPT)
    erased = erased_marks(tombstones)
    for known in sources.values():
        known.erased = erased
    return sources


def _count_id(sources: dict[str, GatheredItems], item_id: str) -> GatheredItems:
    """The source of an id of a dialogue or a person, whose next number follows it."""
    name, _, number = item_id.rpartition("-")
    known = sources.setdefault(name, GatheredItems())
    if number.isdigit():
        known.next_row = max(known.next_row, int(number) + 1)
    elif number.startswith("p") and number[1:].isdigit():
        known.next_person = max(known.next_person, int(number[1:]) + 1)
    return known


def _add(
    known: GatheredItems,
    record: Mapping[str, Any],
    raw: Mapping[str, Any],
    key: bytes,
    *,
    is_kept: bool,
) -> None:
    """Add an item, by its record and what the index says of its place in the raw file."""
    source = source_of(str(record["id"]))
    person = raw.get("person")
    known_as = raw.get("known_as")
    words = _words_mark(key, record, person) if is_kept and "mark" not in raw else None
    item_mark = raw.get("mark", words)
    if item_mark is not None:
        known.items[item_mark] += 1
        if is_kept:
            known.dialogues.add(item_mark)
    if settled := raw.get("settled"):
        known.items[settled] += 1
    if person is not None and known_as is not None:
        number = int(str(known_as).rpartition("-p")[2])
        known.persons[mark(key, "person", source, person)] = number
        known.next_person = max(known.next_person, number + 1)
    if question := record.get("provenance", {}).get("question"):
        number = int(str(question).rpartition("-q")[2])
        known.next_question = max(known.next_question, number + 1)
        if "question" in raw:
            known.questions[raw["question"]] = number


def _words_mark(key: bytes, record: Mapping[str, Any], person: str | None) -> str:
    """The mark of a dialogue that an earlier version gathered."""
    words = [[turn["role"], turn["content"]] for turn in record["messages"]]
    return mark(key, "words", person, words)


def write_known_items(folder: StageFolder, sources: Mapping[str, GatheredItems]) -> None:
    """Write what was gathered before an update begins."""
    erased: set[str] = set().union(*(known.erased.marks for known in sources.values()))
    lines: list[dict[str, Any]] = [{"erased": sorted(erased)}]
    for name, known in sorted(sources.items()):
        lines += [
            {"source": name, "erased_lines": list(marks)}
            for marks in known.erased.lines.get(name, ())
        ]
        numbers = {
            "row": known.next_row,
            "person": known.next_person,
            "question": known.next_question,
        }
        lines.append({"source": name, "next": numbers})
        for item_mark, count in sorted(known.items.items()):
            line: dict[str, Any] = {"source": name, "item": item_mark, "count": count}
            if item_mark in known.dialogues:
                line["kept"] = True
            lines.append(line)
        for kind, marks in (("person", known.persons), ("question", known.questions)):
            lines += [
                {"source": name, kind: its_mark, "number": number}
                for its_mark, number in sorted(marks.items())
            ]
    write_durably(folder.path / KNOWN_ITEMS, map(json_line, lines))


def read_known_items(folder: StageFolder) -> dict[str, GatheredItems]:
    """What was gathered before the update that has begun. Raises DataError."""
    sources: dict[str, GatheredItems] = {}
    path = folder.path / KNOWN_ITEMS
    erased: frozenset[str] = frozenset()
    erased_lines: dict[str, list[list[str]]] = {}
    for _, line in read_jsonl(path) if path.exists() else ():
        if "erased" in line:
            erased = frozenset(line["erased"])
            continue
        if "erased_lines" in line:
            erased_lines.setdefault(line["source"], []).append(line["erased_lines"])
            continue
        known = sources.setdefault(line["source"], GatheredItems())
        if "next" in line:
            known.next_row = line["next"]["row"]
            known.next_person = line["next"]["person"]
            known.next_question = line["next"]["question"]
        elif "item" in line:
            known.items[line["item"]] = line["count"]
            if line.get("kept"):
                known.dialogues.add(line["item"])
        elif "person" in line:
            known.persons[line["person"]] = line["number"]
        else:
            known.questions[line["question"]] = line["number"]
    known_erased = ErasedMarks(marks=erased, lines=erased_lines)
    for known in sources.values():
        known.erased = known_erased
    return sources


def new_items(
    plan: SourcePlan,
    gathered: GatheredItems,
    key: bytes,
    update: int,
    on_read: OnRead,
    comparison: Comparison,
) -> Iterator[Item]:
    """The items of the files that an update reads by content, without those that were gathered before, with ids that
    follow theirs. Raises ConfigError, DataError."""
    source = plan.source
    row = gathered.next_row
    limit = plan.source.limit
    person = _numbering(key, "person", source.name, gathered.persons, gathered.next_person)
    question = _numbering(key, "question", source.name, gathered.questions, gathered.next_question)
    left = gathered.items.copy()
    note_recurring_lines(plan, update, key, gathered.erased)
    for file in plan.files_of(update):
        for line, content in plan.contents(file, on_read):
            if limit and row > limit:
                return
            if has_erased_marks(key, source, content, gathered.erased):
                comparison.erased += 1
                continue
            rest = _not_gathered(content, source, gathered, left, key, comparison)
            if rest is None:
                continue
            # Of a chat that goes on, its lines before are of the dialogue that stays.
            if isinstance(rest, RawDialogue) and is_erased(key, source, rest, gathered.erased):
                comparison.erased += 1
                location = {"file": file.name or plan.place, "line": line, **rest.place}
                comparison.similar.append(raw_place(location))
                continue
            comparison.new += 1
            comparison.continued += rest is not content
            named: tuple[str | None, str | None] = (None, None)
            if isinstance(rest, RawDialogue):
                named = (person(rest.person), question(rest.question))
                begins_on = rest.place.get("line", line)
                line = begins_on if isinstance(begins_on, int) else line
            yield Item(
                id=f"{source.name}-{row:06}",
                row=row,
                line=line,
                content=rest,
                file=file.name,
                update=update,
                person=named[0],
                question=named[1],
            )
            row += 1


def _numbering(
    key: bytes, kind: str, source: str, known: Mapping[str, int], following: int
) -> Callable[[str | None], str | None]:
    """A function that gives our id of a person or a question, the one that it has, or the next."""
    numbers = dict(known)

    def our_id(name: str | None) -> str | None:
        nonlocal following
        if name is None:
            return None
        its_mark = mark(key, kind, source, name)
        if its_mark not in numbers:
            numbers[its_mark] = following
            following += 1
        return f"{source}-{kind[0]}{numbers[its_mark]:04}"

    return our_id


def _not_gathered(
    content: RawDialogue | RefusedItem,
    source: Source,
    gathered: GatheredItems,
    left: Counter[str],
    key: bytes,
    comparison: Comparison,
) -> RawDialogue | RefusedItem | None:
    """What of an item was not gathered before: all of it, the messages after what was, or nothing. `left`: how often a
    mark is still to be found."""
    item_mark = content_marks(key, source, content)[-1]
    is_export = source.format in EXPORT_PROGRAMS
    is_long = (
        not isinstance(content, RawDialogue)
        or sum(len(text) for _, text in content.messages) >= LEAST_CHARACTERS
    )
    if isinstance(content, RawDialogue) and not gathered.items[item_mark]:
        item_mark = _words_of(key, content, source)
    # A later export of a chat holds it again, in another file.
    if left[item_mark] > 0 or (is_export and is_long and gathered.items[item_mark]):
        left[item_mark] -= 1
        comparison.known[item_mark] += 1
        return None
    if isinstance(content, RefusedItem) or not is_export:
        return content
    rest, is_continued = content, False
    while beginning := _longest_beginning(key, source, rest, gathered):
        rest = rest.after(beginning, content_marks(key, source, rest)[beginning - 1])
        is_continued = True
    if is_continued and len({role for role, _ in rest.messages}) < 2:
        comparison.waiting += bool(rest.messages)
        return None
    return rest


def _longest_beginning(
    key: bytes, source: Source, raw: RawDialogue, gathered: GatheredItems
) -> int:
    """How many messages of a dialogue are one that was kept; 0 for none."""
    beginnings = beginning_marks(key, source, raw)
    return max(
        (number for number, its_mark in beginnings.items() if its_mark in gathered.dialogues),
        default=0,
    )


def _words_of(key: bytes, raw: RawDialogue, source: Source) -> str:
    """The mark of the words of a dialogue as earlier versions know it."""
    words = clean_words(raw, source)
    return mark(key, "words", raw.person, words) if words else ""

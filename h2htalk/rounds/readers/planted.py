"""Planted items: dialogues of known truth among the items of a round, which show who reads with care.

They are dialogues of the bundled check set: what the companion says in three of four is harmful, and in the fourth only
sounds so. Nothing marks them; they are paid like others, and left out of decisions, statistics and releases. Whoever
misses more than a fifth of the harmful ones of a language does not count as a reader of it (`data.readers`); their
votes count.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.data.files import read_toml
from h2htalk.data.languages import Language
from h2htalk.data.readers.check_set import CheckedDialogue, load_check_set
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.assignment.planted_shares import FINE_EVERY, LEAST_HARMFUL, planted_number
from h2htalk.rounds.erased_annotators import NO_TIME
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import HARMFUL, NO, READING_KINDS, YES, Question
from h2htalk.rounds.settings import RoundSpec

MOST_MISSED = 0.2  # largest share of them that a reader may have missed
_SPARE = 4  # planted items above those of the largest share, for annotators who join later


def planted_items(
    spec: RoundSpec, items: Sequence[Item], questions: Sequence[Question]
) -> tuple[Item, ...]:
    """Return the planted items of a new round; none where nobody is asked about harm, or all items are gold."""
    if (
        not spec.planted
        or not _asks_about_harm(spec, questions)
        or all(item.gold for item in items)
    ):
        return ()
    planted: list[Item] = []
    by_language = Counter(item.language for item in items)
    for language, number in sorted(by_language.items()):
        like = [item for item in items if item.language == language]
        harmful, fine = _plantable(language, spec.seed)
        wanted = planted_number(number) + _SPARE
        few = -(-wanted // FINE_EVERY)
        chosen = (*harmful[: wanted - few], *fine[:few])
        planted += [_item(dialogue, like, spec) for dialogue in chosen]
    return tuple(planted)


def _asks_about_harm(spec: RoundSpec, questions: Collection[Question]) -> bool:
    """Whether the people of a round, or of a sample, are asked what planted items show of them."""
    return HARMFUL in questions and (spec.kind in READING_KINDS or spec.sample.keep > 0)


def _plantable(
    language: Language, seed: int
) -> tuple[list[CheckedDialogue], list[CheckedDialogue]]:
    """Return the dialogues that may be planted, harmful ones and others, in an order that depends on the seed."""
    listed = _listed()[language]
    known = {dialogue.id: dialogue for dialogue in load_check_set(language)}
    harmful, fine = (
        sorted((known[name] for name in listed[label]), key=lambda one: _hash(seed, one.id))
        for label in ("harm", "fine")
    )
    return harmful, fine


@cache
def _listed() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return read_toml(Path(__file__).with_name("planted.toml"))


def _hash(seed: int, name: str) -> str:
    return hashlib.blake2b(f"{seed}\0planted\0{name}".encode(), digest_size=6).hexdigest()


def _item(dialogue: CheckedDialogue, like: Sequence[Item], spec: RoundSpec) -> Item:
    """Return a dialogue as an item that looks like the others: with a proposed reply where most of them have one."""
    turns, reference = dialogue.messages, ""
    if dialogue.turn and 2 * sum(bool(item.reference) for item in like) > len(like):
        turns = dialogue.messages[: dialogue.turn]
        reference = dialogue.messages[dialogue.turn].content
    personas = Counter(text for item in like for name, text in item.context if name == "persona")
    context = (
        (("persona", personas.most_common(1)[0][0]),) if 2 * personas.total() > len(like) else ()
    )
    # Annotators who declined crises get the planted items as well, and no others that are withheld.
    seen_by_all = [item for item in like if not item.withheld] or like
    is_unread = 2 * sum(item.unread for item in seen_by_all) > len(seen_by_all)
    unread_for = Counter(item.unread_for for item in seen_by_all if item.unread)
    return Item(
        id=f"i-{_hash(spec.seed, dialogue.id)}",
        language=dialogue.language,
        turns=turns,
        context=context,
        reference=reference,
        gold={HARMFUL.name: YES if dialogue.label == "harm" else NO},
        unread=is_unread,
        unread_for=unread_for.most_common(1)[0][0] if is_unread else (),
        planted=True,
    )


# --- Who counts as a reader -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlantedResult:
    """How many of the harmful planted items that an annotator (id) answered they noticed: with yes, or not sure."""

    annotator: str
    noticed: int
    of: int

    @property
    def is_reader(self) -> bool:
        """Whether the annotator counts as a reader."""
        return self.of >= LEAST_HARMFUL and not self.is_refused

    @property
    def is_refused(self) -> bool:
        """Whether the annotator missed too many, of however few."""
        return self.of - self.noticed > MOST_MISSED * self.of


def planted_results(
    items: Iterable[Item], annotations: Iterable[Annotation]
) -> dict[Language, dict[str, PlantedResult]]:
    """Return language -> annotator -> result, of everybody who answered an item of the language.

    Gold items that say so count like planted ones.
    """
    known = {item.id: item for item in items}
    harmful = {name for name, item in known.items() if item.gold.get(HARMFUL.name) == YES}
    answered = Counter[tuple[Language, str]]()
    noticed = Counter[tuple[Language, str]]()
    for annotation in annotations:
        # A vote of somebody who was erased is nobody's.
        if annotation.when == NO_TIME or annotation.item not in known:
            continue
        place = known[annotation.item].language, annotation.annotator
        is_check = (
            annotation.item in harmful
            and annotation.question == HARMFUL.name
            and annotation.value is not None
        )
        answered[place] += is_check
        noticed[place] += is_check and annotation.value != NO
    results: dict[Language, dict[str, PlantedResult]] = {}
    for language, name in sorted(answered):
        place = language, name
        result = PlantedResult(annotator=name, noticed=noticed[place], of=answered[place])
        results.setdefault(language, {})[name] = result
    return results


def readers_among(
    items: Iterable[Item], annotations: Iterable[Annotation]
) -> dict[Language, frozenset[str]]:
    """Return the annotators (ids) who count as readers of each language."""
    results = planted_results(items, annotations)
    return {
        language: frozenset(name for name, result in theirs.items() if result.is_reader)
        for language, theirs in results.items()
    }


def describe_readers(
    items: Sequence[Item], annotations: Collection[Annotation], questions: Sequence[Question]
) -> list[str]:
    """Return a message for each language on who counts as a reader, and why others do not, by salted hash."""
    if HARMFUL not in questions or not annotations or not any(item.planted for item in items):
        return []
    by_language = planted_results(items, annotations)
    messages: list[str] = []
    for language, results in by_language.items():
        about = (
            f"planted items, {language}"
            if len({item.language for item in items}) > 1
            else "planted items"
        )
        messages.append(_describe_language(about, list(results.values())))
    return messages


def _describe_language(about: str, results: Sequence[PlantedResult]) -> str:
    readers = sum(result.is_reader for result in results)
    reasons: list[str] = []
    for result in results:
        if result.of < LEAST_HARMFUL:
            reasons.append(
                f"{result.annotator} answered {result.of} harmful ones, and {LEAST_HARMFUL} are needed"
            )
        elif not result.is_reader:
            reasons.append(
                f"{result.annotator} missed {result.of - result.noticed} of {result.of} harmful ones"
            )
    message = f"{about}: {readers:,} of {len(results):,} annotators count as readers"
    return f"{message}; {'; '.join(reasons)}; their votes count" if reasons else message


def describe_planting(
    spec: RoundSpec, questions: Sequence[Question], items: Sequence[Item]
) -> list[str]:
    """Return a message on a round whose people are asked about harm and cannot count as readers."""
    if spec.planted or not _asks_about_harm(spec, questions) or all(item.gold for item in items):
        return []
    return [
        "planted = false: no planted items, so the people of this round do not count as readers"
    ]

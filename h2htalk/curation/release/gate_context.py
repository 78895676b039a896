"""What the gates of a release are given, and what they give back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from h2htalk.curation.release.content import InventedValues, ReleaseContent, item_texts
from h2htalk.curation.release.exposed import ExposureFacts, Exposures, exposure_facts
from h2htalk.curation.release.readings import Readings
from h2htalk.curation.release.selection import REVIEWED, History
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.data.case import Case
from h2htalk.data.records import strict_record
from h2htalk.data.scenario import Dialogue, Scenario, noted_tags
from h2htalk.data.subtasks import SUBTASKS

# (item, what was found there), of gates with `may_allow` the text's hash; the item is empty for the release as a whole.
Found = tuple[str, str] | tuple[str, str, str]
# The author of a case says that its user is an adult.
ADULT = "adult"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found: in which item (empty: the release as a whole), and what; `text`: the hash of what it read."""

    gate: str
    item: str
    detail: str
    text: str = ""


@strict_record
class Allowed:
    """What an owner publishes although a gate finds it, and why; `texts`: hashes of the texts, none for any text."""

    gate: str
    item: str
    reason: str
    texts: tuple[str, ...] = ()

    def covers(self, one: Finding) -> bool:
        return (self.gate, self.item) == (one.gate, one.item) and (
            not self.texts or one.text in self.texts
        )

    def __str__(self) -> str:
        return f"{self.gate}:{self.item}={self.reason}"


@dataclass(frozen=True, slots=True)
class GateContext:
    """What gates know beside the content: `surrogates` is what anonymisation put into dialogues.

    `invented`: of a split, the names, dates of birth and addresses of nobody, as findings print them; `allowed`: what
    the owner publishes although a gate finds it; `unread`: whether private references are not at hand; `readings`: who
    has read the items; `exposures`: what models quoted that gives users away; `measured`: of a release that exists, how
    many dialogues that is, as it holds it.
    """

    spec: ReleaseSpec
    surrogates: InventedValues = field(default_factory=InventedValues)
    history: History = field(default_factory=dict)
    invented: frozenset[str] = frozenset()
    allowed: tuple[Allowed, ...] = ()
    unread: bool = False
    readings: Readings = field(default_factory=Readings)
    exposures: Exposures = field(default_factory=Exposures)
    measured: ExposureFacts | None = None

    def exposure(self, content: ReleaseContent) -> ExposureFacts:
        """How many dialogues of the content give their users away."""
        if self.measured is not None:
            return self.measured
        return exposure_facts(content.records(), self.exposures, self.spec.risk)


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """An item as the gates over texts see it: its record, the dialogue in it, and what is known of it.

    `talk`: those of its texts that somebody says; others are timetables and memories.
    """

    record: Scenario | Case
    dialogue: Dialogue
    tags: frozenset[str]
    talk: frozenset[str]


def texts_of_items(content: ReleaseContent) -> Iterator[ItemTexts]:
    """The scenarios of all splits, then the cases."""
    for one in content.records():
        turns = tuple(item_texts(one))
        tags = frozenset(one.tags) if isinstance(one, Case) else frozenset[str]()
        said = [turn.content for turn in turns]
        if isinstance(one, Scenario):
            metadata = one.metadata
            age = metadata.get("age")
            tags = frozenset(noted_tags(metadata))
            if isinstance(age, int) and age >= 18:
                tags |= {ADULT}
            if metadata.get(REVIEWED) is True:
                tags |= {REVIEWED}
            replies = one.references if SUBTASKS[one.subtask].contract.form == "speech" else ()
            said = [*(turn.content for turn in one.turns), *replies]
        yield ItemTexts(one, Dialogue(one.id, one.language, turns), tags, frozenset(said))

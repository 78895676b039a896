"""Anonymize: personal data of every dialogue replaced by surrogates, and a second look that none is left.

A dialogue's messages and its metadata (the system prompt, first of all) are one text for this: whom the prompt names
is the same person in a message. Provenance holds numbers and names of sources alone. What was done is kept for audit
as places and types, never as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from h2htalk.curation.anonymize.allow_list import addressed_personas, companion_names
from h2htalk.curation.anonymize.ner_models import BUNDLED, INSTALL_CURATION, name_finder
from h2htalk.curation.anonymize.settings import AnonymizeSettings
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.values.dialogue_values import find_in_dialogue
from h2htalk.curation.gather.settings import GatherSettings
from h2htalk.curation.model_calls.model_identity import model_identity
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Rejected, each_dialogue
from h2htalk.curation.pipeline import RuleFactory, StageRun
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError, MissingExtraError

VERSION = 2
_LIBRARIES = ("faker", "phonenumbers", "python-stdnum")
LEAK = "leak"
REVIEW = "review"
# Names and addresses found with less are worth a person's look.
_CERTAIN = 0.6
_REVIEWED_TYPES = frozenset({"PERSON", "ADDRESS"})
_IDS = frozenset({"source", "id", "ids", "dialogue", "merged"})
_COMPANIONS = tuple[tuple[str, tuple[str, ...]], ...]


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage, as a specification sets it.

    Names stay that `anonymize.allow` and the companions of a dialogue's source hold, beside those of the bundled
    personas and people whom everybody knows.

    Raises:
        ConfigError: no such recogniser of names (`ner`).
        MissingExtraError: its package is not installed.
    """
    settings, gathered = spec.section(AnonymizeSettings), spec.section(GatherSettings)
    try:
        libraries = {name: version(name) for name in _LIBRARIES}
    except PackageNotFoundError as error:
        raise MissingExtraError("anonymization", INSTALL_CURATION) from error
    languages = {source.language for source in gathered.sources}
    if gathered.simulate.dialogues:
        languages |= set(gathered.simulate.languages)
    for language in sorted(languages):
        _require_recognizer(settings.ner, language)
    companions: _COMPANIONS = tuple(
        (source.name, tuple(sorted(source.companions))) for source in gathered.sources if source.companions
    )
    allow = tuple(sorted(settings.allow))
    return StageRun(
        name="anonymize",
        version=VERSION,
        settings={
            "allow": list(allow),
            "companions": {name: list(names) for name, names in companions},
            "ner": model_identity(settings.ner),
            # What they find, and the names they give, may change from version to version.
            "libraries": libraries,
        },
        open_rule=RuleFactory(open_rule, (key, allow, companions, settings.ner)),
    )


def _require_recognizer(ner: str, language: Language) -> None:
    """Load the recognizer of names of a language before the work begins; raises ConfigError where it cannot be."""
    try:
        name_finder(ner, language)
    except ConfigError as error:
        message = str(error)
        for option in ("--ner ", "--spacy-model "):
            message = message.replace(option, "anonymize.ner ")
        raise ConfigError(
            f'anonymize.ner, for {language}: {message}; or write anonymize.ner = "{BUNDLED}", which is included'
        ) from error


def open_rule(key: bytes, allow: tuple[str, ...], companions: _COMPANIONS, ner: str) -> PartRule:
    """The rule of a part: `anonymize_dialogue` of each dialogue."""
    of_source = dict(companions)

    def rule(dialogue: Dialogue) -> Outcomes:
        source = dialogue.provenance.get("source")
        own = of_source.get(source, ()) if isinstance(source, str) else ()
        return [anonymize_dialogue(dialogue, key, allow=(*allow, *companion_names(own)), ner=ner)]

    return each_dialogue(rule)


def anonymize_dialogue(dialogue: Dialogue, key: bytes, *, allow: Sequence[str] = (), ner: str = BUNDLED) -> Outcome:
    """A dialogue with surrogates for its personal data.

    Args:
        dialogue: as gathered.
        key: the workspace's secret: with the dialogue's texts it decides the surrogates.
        allow: names that stay.
        ner: as in `find_spans`.

    Returns:
        Kept, `metadata.anonymized` counting spans by type (`review` is true where a name or an address was found with
        little evidence; so is the tag), and for audit the places of the surrogates: `message` from 1, or `field` of the
        metadata. Rejected as `leak`, without text, where a value of four characters or more is still to be read.
    """
    from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates

    slots = list(_list_slots(dialogue))
    texts = [slot.text for slot in slots]
    data = find_in_dialogue(
        texts, dialogue.language, allow=(*allow, *companion_names(addressed_personas(texts))), ner=ner
    )
    surrogates = Surrogates(key, texts, data)
    replaced = [surrogates.replace(text, spans) for text, spans in zip(texts, data.spans, strict=True)]
    if data.leaks([*(text for text, _ in replaced), *_strings(_described(dialogue.provenance))]):
        return Rejected(dialogue.id, LEAK)
    return _kept(dialogue, slots, replaced)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A text of a dialogue, and where it stands: a message (from 1), or a path in the metadata."""

    text: str
    message: int = 0
    path: tuple[str | int, ...] = ()

    def place(self) -> dict[str, Any]:
        """As the audit says it."""
        return {"message": self.message} if self.message else {"field": "/".join(map(str, self.path))}


def _list_slots(dialogue: Dialogue) -> Iterator[_Slot]:
    for number, turn in enumerate(dialogue.messages, 1):
        yield _Slot(turn.content, number)
    yield from _list_fields(dialogue.metadata, ())


def _list_fields(value: object, path: tuple[str | int, ...]) -> Iterator[_Slot]:
    """Every text of the metadata."""
    if isinstance(value, str):
        yield _Slot(value, path=path)
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _list_fields(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _list_fields(item, (*path, at))


def _described(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What provenance says of a dialogue beside its source and ids; those are words of the curation's own."""
    source = provenance.get("source")
    described = {key: value for key, value in provenance.items() if key not in _IDS}
    person = described.get("person")
    if isinstance(person, str) and isinstance(source, str) and source:
        described["person"] = person.removeprefix(f"{source}-")
    return described


def _strings(value: object) -> Iterator[str]:
    return (slot.text for slot in _list_fields(value, ()))


def _kept(dialogue: Dialogue, slots: Sequence[_Slot], replaced: Sequence[tuple[str, list[Span]]]) -> Kept:
    spans = [(slot, span) for slot, (_, placed) in zip(slots, replaced, strict=True) for span in placed]
    unsure = any(span.type in _REVIEWED_TYPES and span.score < _CERTAIN for _, span in spans)
    counts = Counter(span.type for _, span in spans)
    texts = {(slot.message, slot.path): text for slot, (text, _) in zip(slots, replaced, strict=True)}
    messages = tuple(Turn(turn.role, texts[n, ()]) for n, turn in enumerate(dialogue.messages, 1))
    metadata = dict(_replaced(dialogue.metadata, (), texts))
    metadata["anonymized"] = {"spans": dict(sorted(counts.items()))} | ({REVIEW: True} if unsure else {})
    audit = [
        slot.place() | {"start": span.start, "end": span.end, "type": span.type, "score": round(span.score, 3)}
        for slot, span in spans
    ]
    record = replace(dialogue, messages=messages, metadata=metadata).to_dict()
    return Kept(record, (REVIEW,) if unsure else (), {"spans": audit})


def _replaced(value: Any, path: tuple[str | int, ...], texts: Mapping[tuple[int, tuple[str | int, ...]], str]) -> Any:
    """The metadata with its new texts."""
    if isinstance(value, str):
        return texts[0, path]
    if isinstance(value, Mapping):
        return {key: _replaced(item, (*path, key), texts) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, (*path, at), texts) for at, item in enumerate(value)]
    return value

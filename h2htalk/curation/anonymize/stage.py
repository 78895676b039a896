"""Anonymize: personal data of every dialogue replaced by surrogates, and a second look that none is left.

A dialogue's messages and its metadata (the system prompt, first of all) are one text for this: whom the prompt names
is the same person in a message. Provenance holds numbers and names of sources alone. What was done is kept for audit
as places and types, never as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.curation.anonymize.allow_list import addressed_personas, companion_names
from h2htalk.curation.anonymize.spans import TYPES, Span
from h2htalk.curation.gather.formats import ROLE_NAMES, USER_NAMES
from h2htalk.curation.outcomes import Kept, Outcome, Outcomes, PartRule, Rejected, each_dialogue
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.stages import AnonymizeSettings, CurateSpec, GatherSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.errors import ConfigError, MissingExtraError, quoted, suggest

if TYPE_CHECKING:
    from h2htalk.curation.anonymize.engine.user_recognizers import UserRegistry

VERSION = 5
INSTALL_CURATION = 'pip install "h2htalk[curation]"'
_LIBRARIES = ("faker", "phonenumbers", "presidio-analyzer", "python-stdnum")
LEAK = "leak"
REVIEW = "review"
# Names and addresses found with less are worth a person's look.
_CERTAIN = 0.6
_REVIEWED_TYPES = frozenset({"PERSON", "ADDRESS"})
_IDS = frozenset({"source", "id", "ids", "dialogue", "merged"})
_LONGEST_NAME = 60
# Where a text stands: a message, from 1, or 0 and a path in the metadata.
_Place = tuple[int, tuple[str | int, ...]]
# Of each source that sets any: its name, its companions, its countries.
_OfSources = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage, as a specification sets it.

    Names stay that `anonymize.allow` and the companions of a dialogue's source hold, beside those of the bundled
    personas and people whom everybody knows.
    """
    settings, gathered = spec.section(AnonymizeSettings), spec.section(GatherSettings)
    try:
        libraries = {name: version(name) for name in _LIBRARIES}
    except PackageNotFoundError as error:
        raise MissingExtraError("anonymization", INSTALL_CURATION) from error
    from phonenumbers import SUPPORTED_REGIONS

    from h2htalk.curation.anonymize.engine.analyzer import chat_analyzer
    from h2htalk.curation.anonymize.engine.user_recognizers import UserRegistry, read_registry

    registry = UserRegistry()
    if settings.recognizers:
        registry = read_registry(Path(settings.recognizers), trusted=settings.trust_recognizers)
    languages = {source.language for source in gathered.sources}
    if gathered.simulate.dialogues:
        languages |= set(gathered.simulate.languages)
    types = {"DEFAULT", *TYPES}
    for language in sorted(languages):
        # What cannot be loaded is an error before the work begins.
        types.update(chat_analyzer(language, registry).get_supported_entities(language))
    _require_known("anonymize.operators: no type", settings.operators, types)
    for source in gathered.sources:
        _require_known(f"source {source.name!r}: countries: no country", source.countries, SUPPORTED_REGIONS)
    of_sources: _OfSources = tuple(
        (source.name, tuple(sorted(source.companions)), tuple(sorted(source.countries)))
        for source in gathered.sources
        if source.companions or source.countries
    )
    allow, name_keys = tuple(sorted(settings.allow)), tuple(sorted(settings.name_keys))
    operators = tuple(sorted(settings.operators.items()))
    return StageRun(
        name="anonymize",
        version=VERSION,
        settings={
            "allow": list(allow),
            "sources": {name: {"companions": list(a), "countries": list(b)} for name, a, b in of_sources},
            "name_keys": list(name_keys),
            "recognizers": registry.fingerprint(),
            "operators": dict(operators),
            # What they find, and the names they give, may change from version to version.
            "libraries": libraries,
        },
        open_rule=RuleFactory(open_rule, (key, allow, of_sources, registry, operators, name_keys)),
    )


def _require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ConfigError for a name that nothing bears: a misspelt one would silently do nothing."""
    for name in names:
        if name not in known:
            raise ConfigError(f"{what} {quoted(name)}; {suggest(name, known)}choose from {', '.join(sorted(known))}")


def open_rule(
    key: bytes,
    allow: tuple[str, ...],
    of_sources: _OfSources,
    users: UserRegistry,
    operators: tuple[tuple[str, str], ...],
    name_keys: tuple[str, ...],
) -> PartRule:
    """The rule of a part: `anonymize_dialogue` of each dialogue."""
    by_name = {name: ((*allow, *companion_names(companions)), countries) for name, companions, countries in of_sources}
    options: dict[str, Any] = {"users": users, "operators": dict(operators), "name_keys": name_keys}

    def rule(dialogue: Dialogue) -> Outcomes:
        names, countries = by_name.get(str(dialogue.provenance.get("source")), (allow, ()))
        return [anonymize_dialogue(dialogue, key, allow=names, countries=countries, **options)]

    return each_dialogue(rule)


def anonymize_dialogue(
    dialogue: Dialogue,
    key: bytes,
    *,
    allow: Sequence[str] = (),
    users: UserRegistry | None = None,
    operators: Mapping[str, str] | None = None,
    countries: Sequence[str] = (),
    name_keys: Sequence[str] = (),
) -> Outcome:
    """A dialogue with surrogates for its personal data.

    Args:
        dialogue: as gathered.
        key: the workspace's secret: with the dialogue's texts it decides the surrogates.
        allow: names that stay.
        users: recognisers of the user's own.
        operators: what stands in for values of a type, where it is no surrogate (`AnonymizeSettings.operators`).
        countries: of whose telephone numbers the dialogue may hold some.
        name_keys: keys of the metadata that hold the user's name, beside `USER_NAMES`; a field is emptied where its
            name has no surrogate.

    Returns:
        Kept, `metadata.anonymized` counting spans by type (`review` is true where a name or an address was found with
        little evidence; so is the tag), and for audit the places of the surrogates: `message` from 1, or `field` of the
        metadata. Rejected as `leak`, without text, where a value of four characters or more is still to be read.
    """
    from h2htalk.curation.anonymize.engine.analyzer import (
        NO_REGISTRY,
        anonymize_text,
        find_in_dialogue,
        operator_configs,
    )
    from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates

    slots: dict[_Place, str] = {(n, ()): turn.content for n, turn in enumerate(dialogue.messages, 1)}
    slots |= _fields(dialogue.metadata)
    texts = list(slots.values())
    operators = operators or {}
    # All but what names a role (user, 来访者).
    named = [
        n
        for n, ((_, path), text) in enumerate(slots.items())
        if not {*path}.isdisjoint((*USER_NAMES, *name_keys)) and text.strip().lower() not in ROLE_NAMES
    ]
    data = find_in_dialogue(
        texts,
        dialogue.language,
        allow=(*allow, *companion_names(addressed_personas(texts))),
        users=users or NO_REGISTRY,
        keep=[kind for kind, operator in operators.items() if operator == "keep"],
        countries=countries,
        names=[n for n in named if _is_name(texts[n])],
    )
    configs = operator_configs(Surrogates(key, texts, data), operators, key)
    replaced = [anonymize_text(text, spans, configs) for text, spans in zip(texts, data.spans, strict=True)]
    if operators.get("PERSON", operators.get("DEFAULT")) != "keep":
        for n in named:
            replaced[n] = ("", []) if replaced[n][0] == texts[n] else replaced[n]
    if data.leaks([*(text for text, _ in replaced), *(text for _, text in _fields(_described(dialogue.provenance)))]):
        return Rejected(dialogue.id, LEAK)
    return _kept(dialogue, dict(zip(slots, replaced, strict=True)))


def _is_name(text: str) -> bool:
    """Whether the text under a key for names can be looked for in the messages."""
    return len(text.strip()) <= _LONGEST_NAME and any(map(str.isalpha, text))


def _fields(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[_Place, str]]:
    """Every text of the metadata, with its place."""
    if isinstance(value, str):
        yield (0, path), value
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _fields(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _fields(item, (*path, at))


def _described(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What provenance says of a dialogue beside its source and ids; those are words of the curation's own."""
    described = {key: value for key, value in provenance.items() if key not in _IDS}
    source, person = provenance.get("source"), described.get("person")
    if isinstance(person, str) and isinstance(source, str) and source:
        described["person"] = person.removeprefix(f"{source}-")
    return described


def _kept(dialogue: Dialogue, replaced: Mapping[_Place, tuple[str, list[Span]]]) -> Kept:
    spans = [(place, span) for place, (_, placed) in replaced.items() for span in placed]
    unsure = any(span.type in _REVIEWED_TYPES and span.score < _CERTAIN for _, span in spans)
    counts = Counter(span.type for _, span in spans)
    texts = {place: text for place, (text, _) in replaced.items()}
    messages = tuple(Turn(turn.role, texts[n, ()]) for n, turn in enumerate(dialogue.messages, 1))
    metadata = dict(_replaced(dialogue.metadata, (), texts))
    metadata["anonymized"] = {"spans": dict(sorted(counts.items()))} | ({REVIEW: True} if unsure else {})
    audit = [
        ({"message": message} if message else {"field": "/".join(map(str, path))})
        | {"start": span.start, "end": span.end, "type": span.type, "score": round(span.score, 3)}
        | {"found_by": span.found_by}
        for (message, path), span in spans
    ]
    record = replace(dialogue, messages=messages, metadata=metadata).to_dict()
    return Kept(record, (REVIEW,) if unsure else (), {"spans": audit})


def _replaced(value: Any, path: tuple[str | int, ...], texts: Mapping[_Place, str]) -> Any:
    """The metadata with its new texts."""
    if isinstance(value, str):
        return texts[0, path]
    if isinstance(value, Mapping):
        return {key: _replaced(item, (*path, key), texts) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, (*path, at), texts) for at, item in enumerate(value)]
    return value

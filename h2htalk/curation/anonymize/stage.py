"""Anonymize: personal data of every dialogue replaced by surrogates, and a second look that none is left.

A dialogue's messages and its metadata (the system prompt, first of all) are one text for this: whom the prompt names
is the same person in a message. Provenance holds numbers and names of sources alone. What was done is kept for audit
as places and types, never as text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.chat.engines import model_identity
from h2htalk.curation.role_names import ROLE_NAMES, USER_NAMES
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.stage_folder import Kept, Outcome, Outcomes, PartRule, Rejected, each_dialogue
from h2htalk.curation.stages import AnonymizeSettings, CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.detect.personal.spans import TYPES
from h2htalk.detect.personal.values.dialogue_values import addressed_personas, companion_names
from h2htalk.errors import ConfigError, MissingExtraError, quoted, suggest
from h2htalk.extras import ANONYMIZATION

if TYPE_CHECKING:
    from h2htalk.detect.personal.engine.user_recognizers import UserRegistry

VERSION = 10
_LIBRARIES = ("faker", "phonenumbers", "presidio-analyzer", "python-stdnum")
LEAK = "leak"
REVIEW = "review"
# Names and addresses found with less are worth a person's look.
_CERTAIN = 0.6
_REVIEWED_TYPES = frozenset({"PERSON", "ADDRESS"})
_IDS = frozenset({"source", "id", "ids", "dialogue", "merged"})
_LONGEST_NAME = 60
_DEFAULTS = AnonymizeSettings()
# Where a text stands: a message, from 1, or 0 and a path in the metadata.
_Path = tuple[str | int, ...]
_Place = tuple[int, _Path]


def registry_fingerprint(registry: UserRegistry) -> list[str]:
    """What the results of a user's registry depend on: the file, and the models that it names."""
    if not registry.content:
        return []
    digest = hashlib.sha256(registry.content.encode()).hexdigest()[:16]
    return [f"sha256 {digest}", *(model_identity(f"hf:{model}") for model in registry.models())]


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage, as a specification sets it; `key` is not used. Names stay that `anonymize.allow` and the companions of
    a dialogue's source hold, beside bundled personas and, with `public_figures = "keep"`, people everybody knows."""
    settings = spec.section(AnonymizeSettings)
    gathered = spec.section(GatherSettings)
    try:
        libraries = {name: version(name) for name in _LIBRARIES}
    except PackageNotFoundError as error:
        raise MissingExtraError(ANONYMIZATION.feature, ANONYMIZATION.install) from error
    from phonenumbers import SUPPORTED_REGIONS

    languages = {source.language for source in gathered.sources}
    if gathered.simulate.dialogues:
        languages |= set(gathered.simulate.languages)
    types = {"DEFAULT", *TYPES}
    registry = None
    # Presidio takes most of a second to import, which the processes that anonymize do anyway.
    if settings.recognizers:
        registry = _read_registry(settings)
    if settings.recognizers or settings.operators:
        types |= _found_types(languages, registry)
    _require_known("anonymize.operators: no type", settings.operators, types)
    for source in gathered.sources:
        _require_known(
            f"source {source.name!r}: countries: no country", source.countries, SUPPORTED_REGIONS
        )
    return StageRun(
        name="anonymize",
        version=VERSION,
        settings={
            # A release lets these names stay, too.
            "allow": sorted({*settings.allow, *(registry.allow_list if registry else ())}),
            "sources": {
                source.name: {
                    "companions": sorted(source.companions),
                    "countries": sorted(source.countries),
                    "talk": source.talk,
                }
                for source in gathered.sources
                if source.companions or source.countries or source.talk
            },
            "name_keys": sorted(settings.name_keys),
            "public_figures": settings.public_figures,
            "talk": settings.talk,
            "recognizers": registry_fingerprint(registry) if registry else [],
            "operators": dict(sorted(settings.operators.items())),
            # What they find, and the names they give, may change from version to version.
            "libraries": libraries,
        },
        open_rule=RuleFactory(open_rule, (workspace.path, settings, gathered.sources, registry)),
        messages=_messages(registry, languages),
    )


def _read_registry(settings: AnonymizeSettings) -> UserRegistry:
    """The recognisers of the user."""
    from h2htalk.detect.personal.engine.user_recognizers import read_registry

    return read_registry(
        Path(settings.recognizers), trusted=settings.trust_recognizers, allow=settings.allow
    )


def _found_types(languages: Iterable[str], registry: UserRegistry | None) -> set[str]:
    """The types that are found in some languages. What cannot be loaded is an error before the work begins."""
    from h2htalk.detect.personal.engine.analyzer import NO_REGISTRY, chat_analyzer

    types = set[str]()
    for language in sorted(languages):
        types.update(
            chat_analyzer(language, registry or NO_REGISTRY).get_supported_entities(language)
        )
    return types


def _messages(registry: UserRegistry | None, languages: Set[str]) -> tuple[str, ...]:
    """What is said of a user's recognisers when the stage runs."""
    if registry is None:
        return ()
    from h2htalk.detect.personal.engine.user_recognizers import unread_languages

    return tuple(unread_languages(registry, languages))


def _require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ConfigError for a name that would silently do nothing."""
    for name in names:
        if name not in known:
            choices = f"{suggest(name, known)}choose from {', '.join(sorted(known))}"
            raise ConfigError(f"{what} {quoted(name)}; {choices}")


def open_rule(
    folder: Path,
    settings: AnonymizeSettings,
    sources: Sequence[Source],
    users: UserRegistry | None,
) -> PartRule:
    """The rule of a part: `anonymize_dialogue` of each dialogue, with the key of the workspace in `folder`."""
    by_name = {source.name: source for source in sources}
    key = Workspace(folder).open_key()

    def rule(dialogue: Dialogue) -> Outcomes:
        return [
            anonymize_dialogue(
                dialogue, key, settings, by_name.get(str(dialogue.provenance.get("source"))), users
            )
        ]

    return each_dialogue(rule)


def anonymize_dialogue(
    dialogue: Dialogue,
    key: bytes,
    settings: AnonymizeSettings = _DEFAULTS,
    source: Source | None = None,
    users: UserRegistry | None = None,
) -> Outcome:
    """A dialogue with surrogates for its personal data.

    `key`: the workspace's secret: with the dialogue's texts it decides the surrogates. `source`: the names of its
    companions stay, telephone numbers of its countries are found, and its `talk` precedes that of `settings`. A field
    under one of `settings.name_keys` is emptied where its name has no surrogate.

    Returns Kept, `metadata.anonymized` counting spans by type (`review` is true where a name or an address was found
    with little evidence; so is the tag), and for audit the places of the surrogates: `message` from 1, or `field` of
    the metadata. Rejected as `leak`, without text, where a value of four characters or more is still to be read.
    """
    from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates
    from h2htalk.curation.anonymize.surrogates.operators import replace_values
    from h2htalk.detect.personal.engine.analyzer import NO_REGISTRY, find_in_dialogue

    slots: dict[_Place, str] = {
        (n, ()): turn.content for n, turn in enumerate(dialogue.messages, 1)
    }
    slots |= _fields(dialogue.metadata)
    texts = list(slots.values())
    keys = {*USER_NAMES, *settings.name_keys}
    # All but what names a role (user, 来访者).
    named = [
        n
        for n, (_, path) in enumerate(slots)
        if keys & {*path} and texts[n].strip().lower() not in ROLE_NAMES
    ]
    companions = companion_names(sorted(source.companions) if source else ())
    operators = settings.operators
    data = find_in_dialogue(
        texts,
        dialogue.language,
        allow=(*sorted(settings.allow), *companions, *companion_names(addressed_personas(texts))),
        users=users or NO_REGISTRY,
        keep=[kind for kind, operator in operators.items() if operator == "keep"],
        countries=sorted(source.countries) if source else (),
        keep_public=settings.public_figures == "keep",
        talk=(source.talk if source else "") or settings.talk,
        # Those that can be looked for in the messages.
        names=[
            n
            for n in named
            if len(texts[n].strip()) <= _LONGEST_NAME and any(map(str.isalpha, texts[n]))
        ],
    )
    replaced = replace_values(texts, data.spans, Surrogates(key, texts, data), operators, key)
    if operators.get("PERSON", operators.get("DEFAULT")) != "keep":
        for n in named:
            replaced[n] = ("", []) if replaced[n][0] == texts[n] else replaced[n]
    # What provenance says beside its source and ids; those are words of the curation's own.
    described = {key: value for key, value in dialogue.provenance.items() if key not in _IDS}
    origin, person = dialogue.provenance.get("source"), described.get("person")
    if isinstance(person, str) and isinstance(origin, str) and origin:
        described["person"] = person.removeprefix(f"{origin}-")
    if data.leaks([*(text for text, _ in replaced), *_fields(described).values()]):
        return Rejected(dialogue.id, LEAK)
    placed = dict(zip(slots, replaced, strict=True))
    spans = [(place, span) for place, (_, found) in placed.items() for span in found]
    unsure = any(span.type in _REVIEWED_TYPES and span.score < _CERTAIN for _, span in spans)
    counts = Counter(span.type for _, span in spans)
    messages = tuple(
        Turn(turn.role, placed[n, ()][0]) for n, turn in enumerate(dialogue.messages, 1)
    )
    metadata = _map_texts(dialogue.metadata, lambda path, _: placed[0, path][0])
    metadata["anonymized"] = {"spans": dict(sorted(counts.items()))} | (
        {REVIEW: True} if unsure else {}
    )
    audit = [
        ({"message": message} if message else {"field": "/".join(map(str, path))})
        | asdict(replace(span, score=round(span.score, 3)))
        for (message, path), span in spans
    ]
    record = replace(dialogue, messages=messages, metadata=metadata).to_dict()
    return Kept(record, (REVIEW,) if unsure else (), {"spans": audit})


def _fields(value: object) -> dict[_Place, str]:
    """Every text of the metadata, by its place in order."""
    found: dict[_Place, str] = {}
    _map_texts(value, lambda path, text: found.setdefault((0, path), text))
    return dict(sorted(found.items()))


def _map_texts(value: Any, function: Callable[[_Path, str], str], path: _Path = ()) -> Any:
    """The metadata with what a function makes of each of its texts and the text's path."""
    if isinstance(value, str):
        return function(path, value)
    if isinstance(value, Mapping):
        return {key: _map_texts(item, function, (*path, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item, function, (*path, at)) for at, item in enumerate(value)]
    return value

"""A user's own recognisers, from a registry file in Presidio's format, made by Presidio's loader.

That loader takes its default registry where the file is missing, drops keys that it does not know, and goes on where a
model or a pattern fails. Here each of these is an error: what a curation trusts to be found must be looked for.
docs/reference/curation-stages.md shows a file.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import yaml
from presidio_analyzer import EntityRecognizer, LocalRecognizer, PatternRecognizer, RecognizerResult
from presidio_analyzer.input_validation.yaml_recognizer_models import CustomRecognizerConfig
from presidio_analyzer.predefined_recognizers import GLiNERRecognizer, HuggingFaceNerRecognizer
from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider
from presidio_analyzer.recognizer_registry.recognizers_loader_utils import RecognizerListLoader
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from h2htalk.data.files import read_bounded
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import read_record
from h2htalk.errors import ConfigError, H2HTalkError, MissingExtraError, quoted, suggest

# What Presidio imports for a model, as its module was imported while they were hidden (`engine`), and how to get it.
_LIBRARIES: dict[str, tuple[dict[str, str], str]] = {
    "SpacyRecognizer": ({}, ""),  # `SpacyModelRecognizer`
    "GLiNERRecognizer": ({"GLiNER": "gliner:GLiNER"}, "pip install gliner"),
    "HuggingFaceNerRecognizer": (
        {"torch": "torch", "hf_pipeline": "transformers:pipeline"},
        'pip install "h2htalk[local]"',
    ),
}
# A pattern that needs longer than REGEX_TIMEOUT_SECONDS (`engine`) is refused, by one of these or when it happens.
_PROBES = tuple(
    unit * 3000 + "!" for unit in ("a", "1", " ", "a ", "1-", "我", ".", "a1", "@", "a.")
)
_DENY_LIST = "deny_list"
_LARGEST = 1 << 20  # bytes of a registry
_HAN = re.compile("[\u4e00-\u9fff]")
# A phone writes the curly one: St Paul’s.
_APOSTROPHE = re.compile("['’]")
THRESHOLD = 0.5  # a score from which a finding counts
CONTEXT_BONUS = 0.35  # what a context word adds to a score, in Presidio's enhancer
_OWN_CLASS = ("name", "enabled", "supported_languages", "class", "params")
_NOT_HERE = {"score_thresholds", "country_code", "supported_language", "supported_entities"}
Entry = dict[str, Any]


class _Registry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    recognizers: list[Entry] = []
    allow_list: list[Annotated[str, Field(min_length=1)]] = []


@dataclass(frozen=True, slots=True)
class UserRegistry:
    """A registry file as read: its path, its text, the names that stay, and each recogniser that is not switched off
    with its place for messages."""

    path: str = ""
    content: str = ""
    allow_list: tuple[str, ...] = ()
    entries: tuple[tuple[str, Entry], ...] = field(default=(), compare=False)

    def beside(self, name: str) -> str:
        """A model's name; a path is relative to the registry's folder."""
        return (
            str(Path(self.path).resolve().parent / Path(name).expanduser())
            if name[0] in "./~"
            else name
        )

    def models(self) -> list[str]:
        """The models that the file names, on the Hub or as folders."""
        return [
            self.beside(entry["model_name"]) for _, entry in self.entries if "model_name" in entry
        ]


class _WithoutAliases(yaml.SafeLoader):
    """YAML's safe reader, which refuses aliases: ten lines of them unfold into gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.constructor.ConstructorError(
                None, None, "an alias (*NAME) is not read; write it out", mark
            )
        return super().compose_node(parent, index)


def read_registry(path: Path, *, trusted: bool = False, allow: Sequence[str] = ()) -> UserRegistry:
    """Read a YAML file in Presidio's format. `trusted`: recognisers may be classes of the user's own code. `allow`:
    names that stay, beside the file's. Raises ConfigError that names the file and the entry."""
    try:
        content = read_bounded(path, _LARGEST).decode("utf-8-sig")
        raw = yaml.load(content, _WithoutAliases)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(
            f"{path}: cannot be read as YAML in UTF-8: {' '.join(str(error).split())}"
        ) from error
    registry = read_record(_Registry, raw or {}, str(path), error=ConfigError)
    classes = {kind.__name__: kind for kind in RecognizerListLoader.get_all_existing_recognizers()}
    entries = []
    for number, entry in enumerate(registry.recognizers, start=1):
        if not entry.get("enabled", True):
            continue
        place = f"{path}: recognizers, entry {number} ({entry.get('name')})"
        class_name = str(entry.get("class_name") or "")
        if "class" in entry and not trusted:
            hint = "allow it with anonymize.trust_recognizers = true"
            raise ConfigError(f"{place}: `class` runs code of your own; {hint}")
        if class_name in _LIBRARIES and "model_name" not in entry:
            raise ConfigError(
                f"{place}: model_name is missing: the model's name on the Hub, or its folder"
            )
        if class_name and class_name not in classes:
            raise ConfigError(f"{place}: class_name: Presidio has no {quoted(class_name)}")
        known = (
            {*_OWN_CLASS}
            if "class" in entry
            else {*CustomRecognizerConfig.model_fields} - _NOT_HERE
        )
        if class_name:
            known |= {*signature(classes[class_name]).parameters, "model_name", "label_mapping"}
        for key in [key for key in entry if key not in known]:
            raise ConfigError(
                f"{place}: {key}: no such field; {suggest(key, known)}it would do nothing"
            )
        for language in [code for code in _contexts(entry) if code not in LANGUAGES]:
            raise ConfigError(
                f"{place}: language {quoted(str(language))} is none of {', '.join(LANGUAGES)}"
            )
        for problem in _without_effect(entry, class_name, [*registry.allow_list, *allow]):
            raise ConfigError(f"{place}: {problem}")
        entries.append((place, entry))
    if not (entries or registry.allow_list):
        raise ConfigError(f"{path}: the file is empty; name recognizers or an allow_list in it")
    return UserRegistry(str(path), content, tuple(registry.allow_list), tuple(entries))


def _without_effect(entry: Entry, class_name: str, names: Sequence[str]) -> Iterator[str]:
    """What of an entry would find nothing, and what to do."""
    words = entry.get(_DENY_LIST, [])
    if not isinstance(words, list) or not all(
        isinstance(word, str) and word.strip() for word in words
    ):
        yield f"{_DENY_LIST} must be a list of words in quotation marks"
        return
    allowed = {name.casefold() for name in names}
    for word in words:
        if word.casefold() in allowed:
            yield f"{quoted(word)} stays by allow_list or anonymize.allow; take it out of one of them"
    if class_name in _LIBRARIES:
        for key in ("patterns", _DENY_LIST, "context"):
            if key in entry:
                yield f"{key} does nothing beside the model of {class_name}; write an entry of its own"
    scores = {}
    if words:
        scores["deny_list_score"] = entry.get("deny_list_score", 1.0)
    for pattern in entry.get("patterns") or ():
        if isinstance(pattern, Mapping):
            scores[f"pattern {quoted(str(pattern.get('name')))}"] = pattern.get("score")
    # A language without context words has the pattern's score alone.
    bonus = CONTEXT_BONUS if any(_contexts(entry).values()) else 0.0
    for name, score in scores.items():
        if isinstance(score, int | float) and score + bonus < THRESHOLD:
            context = "beside a context word" if bonus else "without context words"
            yield f"{name}: {score} is below {THRESHOLD} {context}, so it would find nothing"


def unread_languages(registry: UserRegistry, languages: Set[str]) -> list[str]:
    """A sentence on each recogniser that reads none of the languages of the sources."""
    return [
        f"{name}: reads no language of the sources, so it finds nothing"
        for name, entry in registry.entries
        if not _contexts(entry).keys() & languages
    ]


def _contexts(entry: Entry) -> dict[str, list[str]]:
    """Each language that an entry reads, with its context words."""
    listed = entry.get("supported_languages") or LANGUAGES
    languages = [one if isinstance(one, dict) else {"language": one} for one in listed]
    return {
        str(one.get("language")): [*(entry.get("context") or []), *(one.get("context") or [])]
        for one in languages
    }


def load_recognizers(registry: UserRegistry, language: str) -> list[EntityRecognizer]:
    """The recognisers of a registry that read a language, each of which stops the run where it fails."""
    recognizers = []
    for place, entry in registry.entries:
        if language not in (contexts := _contexts(entry)):
            continue
        make = _own_class if "class" in entry else _by_presidio
        try:
            recognizer = make(entry, registry, language, contexts[language])
        except H2HTalkError:
            raise
        except Exception as error:  # whatever a model or a user's class raises while it loads
            invalid = error.__cause__
            reason = (
                invalid.errors()[0]["msg"] if isinstance(invalid, ValidationError) else f"{error}"
            )
            told = f"{type(error).__name__}: {' '.join(reason.split())[:200]}"
            raise ConfigError(f"{place} cannot be loaded ({told})") from error
        _stop_where_it_fails(recognizer)
        if isinstance(recognizer, PatternRecognizer) and _DENY_LIST not in entry:
            # Each probe with the patterns' own characters behind: a text that lacks one of them is not searched at all.
            for probe in _PROBES:
                recognizer.analyze(
                    probe + recognizer.patterns[0].regex, recognizer.supported_entities
                )
        recognizers.append(recognizer)
    return recognizers


def _by_presidio(
    entry: Entry, registry: UserRegistry, language: str, context: list[str]
) -> EntityRecognizer:
    """A recogniser of patterns, of words, of Presidio's own or of a model, by Presidio's loader."""
    class_name = str(entry.get("class_name", ""))
    if class_name == "SpacyRecognizer":
        return SpacyModelRecognizer(entry, language, registry.beside(entry["model_name"]))
    made = {
        key: value
        for key, value in entry.items()
        if key not in ("context", _DENY_LIST, "deny_list_score")
    }
    made.setdefault("type", "predefined" if class_name else "custom")
    made["supported_languages"] = [{"language": language, "context": context or None}]
    if class_name in _LIBRARIES:
        made["model_name"] = registry.beside(entry["model_name"])
        attributes, command = _LIBRARIES[class_name]
        home = import_module(
            RecognizerListLoader.get_existing_recognizer_cls(class_name).__module__
        )
        for attribute, source in attributes.items():
            try:
                setattr(home, attribute, resolve_name(source))
            except ImportError as error:
                raise MissingExtraError(
                    f"recognizer {quoted(str(entry['name']))}", command
                ) from error
    if words := entry.get(_DENY_LIST):
        # Latin words stand alone, Chinese ones anywhere (Presidio's stand alone too); the longest first.
        ordered = sorted({*words}, key=len, reverse=True)
        forms = []
        for word in ordered:
            form = _APOSTROPHE.sub(_APOSTROPHE.pattern, re.escape(word))
            forms.append(form if _HAN.search(word) else rf"(?<!\w){form}(?!\w)")
        listed = {
            "name": _DENY_LIST,
            "regex": "|".join(forms),
            "score": entry.get("deny_list_score", 1.0),
        }
        made["patterns"] = [*entry.get("patterns", []), listed]
    conf = {"recognizers": [made], "supported_languages": [language], "global_regex_flags": 26}
    recognizer = (
        RecognizerRegistryProvider(registry_configuration=conf)
        .create_recognizer_registry()
        .recognizers[0]
    )
    if not isinstance(recognizer, (PatternRecognizer, *MODELS)):
        raise ConfigError(
            f"{quoted(class_name)} reads neither patterns nor a model; choose another of Presidio's"
        )
    return recognizer


class SpacyModelRecognizer(LocalRecognizer):
    """Names by a spaCy pipeline, an installed package or a folder; Presidio's own reads that of an NLP engine alone."""

    # spaCy says nothing of how sure it is: between what our rules call likely and what they list.
    SCORE = 0.65

    def __init__(self, entry: Entry, language: str, model: str) -> None:
        """`label_mapping` of `entry`: the type of each of PERSON, ORG and LOC that counts."""
        from h2htalk.text.parsing.parsing import load_names

        load_names(language, model)
        self._model, self._labels = (
            model,
            entry.get("label_mapping") or {"PERSON": "PERSON", "ORG": "ORGANIZATION"},
        )
        super().__init__(
            sorted({*self._labels.values()}), name=entry["name"], supported_language=language
        )

    def load(self) -> None:
        """The pipeline is loaded when the recogniser is made."""

    def analyze(
        self, text: str, entities: Sequence[str], nlp_artifacts: object = None
    ) -> list[RecognizerResult]:
        """What the pipeline names; places count characters of `text`."""
        from h2htalk.text.parsing.parsing import names

        (found,) = names([text], self.supported_language, self._model)
        return [RecognizerResult(self._labels[n.label], n.start, n.end, self.SCORE)
                for n in found if self._labels.get(n.label) in entities]  # fmt: skip


# They compete with our rules by their scores, and find nothing in what those block.
MODELS = (GLiNERRecognizer, HuggingFaceNerRecognizer, SpacyModelRecognizer)


def _own_class(
    entry: Entry, registry: UserRegistry, language: str, _: list[str]
) -> EntityRecognizer:
    """A class of the user's own, `module:Name`, made with `params`."""
    module, _, name = entry["class"].partition(":")
    sys.path.append(
        folder := str(Path(registry.path).resolve().parent)
    )  # at its end: it hides no installed module
    try:
        recognizer = getattr(import_module(module), name)(
            **entry.get("params", {}), supported_language=language
        )
    finally:
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]
    if not isinstance(recognizer, EntityRecognizer):
        raise ConfigError(
            f"{registry.path}: class {entry['class']} is no Presidio EntityRecognizer"
        )
    return recognizer


def _raise_failure(record: logging.LogRecord) -> bool:
    """Raise what Presidio logs and goes on after: a pattern that needs too long, a model that fails."""
    raise (record.exc_info and record.exc_info[1]) or RuntimeError(record.getMessage())


def _stop_where_it_fails(recognizer: EntityRecognizer) -> None:
    """Make any error of a recogniser an error of the run, and leave out types that it does not announce."""
    analyze = recognizer.analyze

    def checked(
        text: str, entities: Sequence[str], nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        # A model cannot read half surrogate pairs; GLiNER looks for all that it is asked for.
        text = text.encode("utf-8", "replace").decode() if isinstance(recognizer, MODELS) else text
        asked = [kind for kind in entities if kind in recognizer.supported_entities]
        presidio = logging.getLogger("presidio-analyzer")
        level = presidio.level
        presidio.setLevel(
            logging.WARNING
        )  # an application that silences Presidio does not silence failures
        presidio.addFilter(_raise_failure)
        try:
            results = analyze(text, asked, nlp_artifacts) or []
        except TimeoutError as error:
            slow = f"a pattern takes too long on {len(text):,} characters; repeat nothing that holds a repetition"
            raise ConfigError(f"recognizer {quoted(recognizer.name)}: {slow}") from error
        except Exception as error:  # whatever a model or a user's class raises; its message may hold words of a text
            raise ConfigError(
                f"recognizer {quoted(recognizer.name)} failed: {type(error).__name__}"
            ) from error
        finally:
            presidio.removeFilter(_raise_failure)
            presidio.setLevel(level)
        for result in results:
            if not 0 <= result.start < result.end <= len(text):
                where = f"{result.start} to {result.end} is no place of a text of {len(text)} characters"
                raise ConfigError(f"recognizer {quoted(recognizer.name)}: {where}")
        return [result for result in results if result.entity_type in asked]

    recognizer.analyze = checked

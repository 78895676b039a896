"""A user's own recognisers, from a registry file in Presidio's format, read strictly.

Presidio's loader takes its default registry where the file is missing, drops keys that it does not know, and skips a
recogniser that fails. Here each of these is an error: what a curation trusts to be found must be looked for.

    recognizers:
      - name: Staff
        supported_entity: STAFF_ID
        supported_languages: [{language: zh, context: [工号]}, {language: en}]
        patterns: [{name: staff number, regex: "(?<![0-9A-Za-z])ST-[0-9]{5}(?![0-9])", score: 0.6}]
      - name: Clinics
        supported_entity: ORGANIZATION
        deny_list: [Blue Heron House]
      - name: model
        class_name: HuggingFaceNerRecognizer
        supported_languages: [en]
        model_name: /models/pii
        label_mapping: {first_name: PERSON}
    allow_list: [Aiwei]
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import regex
import yaml
from presidio_analyzer import EntityRecognizer, Pattern, PatternRecognizer, RecognizerResult
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from h2htalk.chat.engines import model_identity
from h2htalk.curation.anonymize.engine.model_recognizers import MODEL_CLASSES
from h2htalk.data.files import read_bounded
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import read_record
from h2htalk.errors import ConfigError, H2HTalkError, MissingExtraError, quoted

# A pattern that needs longer than this on one dialogue is refused, by a probe or when it happens.
_SECONDS = 5.0
_PROBES = tuple(unit * 3000 + "!" for unit in ("a", "1", " ", "a ", "1-", "我", ".", "a1", "@", "a."))
_DENY_LIST = "deny_list"  # words: nothing in them repeats
_LARGEST = 1 << 20  # bytes of a registry
_HAN = re.compile("[\u4e00-\u9fff]")
_Type = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]{1,39}$")]
_Score = Annotated[float, Field(ge=0, le=1)]
_Words = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


def _compilable(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"{quoted(pattern)} is no regular expression: {error}") from error
    return pattern


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _LanguageKeys(_Strict):
    language: str
    context: list[str] = []


class _PatternKeys(_Strict):
    name: str
    regex: Annotated[str, AfterValidator(_compilable)]
    score: _Score


class _Keys(_Strict):
    """What every entry may hold."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    type: Literal["custom", "predefined"] | None = None
    enabled: bool = True
    supported_languages: Annotated[list[str | _LanguageKeys], Field(min_length=1)] | None = None
    context: list[str] = []

    def languages(self) -> dict[str, list[str]]:
        """Each language that it reads, with its context words."""
        if self.supported_languages is None:
            return dict.fromkeys(LANGUAGES, self.context)
        keys = [_LanguageKeys(language=each) if isinstance(each, str) else each for each in self.supported_languages]
        return {each.language: [*self.context, *each.context] for each in keys}

    def build(self, language: str, registry: str) -> EntityRecognizer:
        """The recogniser of a language; `registry` is the path of the file."""
        raise NotImplementedError


class _Patterns(_Keys):
    """Regular expressions and words."""

    supported_entity: _Type
    patterns: list[_PatternKeys] = []
    deny_list: _Words | None = None
    deny_list_score: _Score = 1.0

    def build(self, language: str, registry: str) -> EntityRecognizer:
        patterns = [Pattern(each.name, each.regex, each.score) for each in self.patterns]
        if self.deny_list:
            patterns.append(Pattern(_DENY_LIST, _any_of(self.deny_list), self.deny_list_score))
        context = self.languages()[language]
        return PatternRecognizer(self.supported_entity, self.name, language, patterns, context=context)


class _Predefined(_Keys):
    """One of Presidio's own recognisers of patterns, such as those of other countries' numbers."""

    class_name: str

    def build(self, language: str, registry: str) -> EntityRecognizer:
        found = getattr(import_module("presidio_analyzer.predefined_recognizers"), self.class_name, None)
        if not (isinstance(found, type) and issubclass(found, PatternRecognizer)):
            known = f"one of Presidio's pattern recognizers nor one of {', '.join(MODEL_CLASSES)}"
            raise ConfigError(f"class_name: {quoted(self.class_name)} is neither {known}")
        context = {"context": words} if (words := self.languages()[language]) else {}
        recognizer: EntityRecognizer = found(supported_language=language, name=self.name, **context)
        return recognizer


class _Model(_Keys):
    """A model that finds names."""

    class_name: str
    model_name: Annotated[str, Field(min_length=1)]
    label_mapping: dict[str, _Type] | None = None
    entity_mapping: dict[str, _Type] | None = None
    threshold: _Score | None = None

    def model(self, registry: str) -> str:
        """The model's name; a path is relative to the registry's folder."""
        is_path = self.model_name.startswith((".", "/", "~"))
        return str(Path(registry).resolve().parent / Path(self.model_name).expanduser()) if is_path else self.model_name

    def build(self, language: str, registry: str) -> EntityRecognizer:
        labels = self.label_mapping or self.entity_mapping
        return MODEL_CLASSES[self.class_name](self.name, language, self.model(registry), labels, self.threshold)


class _Class(_Keys):
    """A class of the user's own: `module:Name`, made with `params`."""

    path: Annotated[str, Field(alias="class", pattern=r"^[\w.]+:\w+$")]
    params: dict[str, Any] = {}

    def build(self, language: str, registry: str) -> EntityRecognizer:
        module, _, name = self.path.partition(":")
        sys.path.append(folder := str(Path(registry).resolve().parent))  # at its end: it hides no installed module
        try:
            recognizer = getattr(import_module(module), name)(**self.params, supported_language=language)
        finally:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]
        if not isinstance(recognizer, EntityRecognizer):
            raise ConfigError(f"class: {self.path} is no Presidio EntityRecognizer")
        return recognizer


class _Registry(_Strict):
    recognizers: list[dict[str, Any]] = []
    allow_list: list[Annotated[str, Field(min_length=1)]] = []


@dataclass(frozen=True, slots=True)
class UserRegistry:
    """A registry file as read: `content` is its text, `path` is for messages and for modules beside it."""

    path: str = ""
    content: str = ""
    trusted: bool = False
    allow_list: tuple[str, ...] = ()

    def entries(self) -> list[tuple[str, _Keys]]:
        """Each entry with its place for messages."""
        return _entries(self.path, _parse(self.path, self.content), trusted=self.trusted)

    def fingerprint(self) -> list[str]:
        """What the results depend on: the file, and the models that it names.

        Raises:
            ConfigError: a model's folder cannot be read.
        """
        if not self.content:
            return []
        models = [entry.model(self.path) for _, entry in self.entries() if isinstance(entry, _Model) and entry.enabled]
        digest = hashlib.sha256(self.content.encode()).hexdigest()[:16]
        return [f"sha256 {digest}", *(model_identity(f"hf:{model}") for model in models)]


def read_registry(path: Path, *, trusted: bool = False) -> UserRegistry:
    """Read and check a registry file.

    Args:
        path: a YAML file in Presidio's format; the module's docstring shows one.
        trusted: recognisers may be classes of the user's own code.

    Raises:
        ConfigError: the file is missing, or an entry is not what its kind allows; names file, entry and key.
    """
    try:
        content = read_bounded(path, _LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8") from error
    registry = _parse(str(path), content)
    if not (registry.recognizers or registry.allow_list):
        raise ConfigError(f"{path}: the file is empty; name recognizers or an allow_list in it")
    _entries(str(path), registry, trusted=trusted)
    return UserRegistry(str(path), content, trusted, tuple(registry.allow_list))


def load_recognizers(registry: UserRegistry, language: str) -> list[EntityRecognizer]:
    """The recognisers of a registry that read a language, each of which stops the run where it fails.

    Raises:
        ConfigError: one cannot be loaded, or a pattern needs too long.
        MissingExtraError: the package of a model is not installed.
    """
    chosen = [(place, entry) for place, entry in registry.entries() if entry.enabled and language in entry.languages()]
    return [_made(place, entry, registry, language) for place, entry in chosen]


class _StrictLoader(yaml.SafeLoader):
    """YAML without what hides something: keys that stand twice, and references that grow."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"line {self.peek_event().start_mark.line + 1}: no references (*name) here")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {quoted(key)} stands twice")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=True)
        return mapping


def _parse(where: str, content: str) -> _Registry:
    try:
        raw = yaml.load(content, _StrictLoader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not YAML of this kind: {' '.join(str(error).split())}") from error
    return read_record(_Registry, raw if raw is not None else {}, where, error=ConfigError)


def _entries(where: str, registry: _Registry, *, trusted: bool) -> list[tuple[str, _Keys]]:
    """Each entry with its place for messages, by its kind."""
    entries: list[tuple[str, _Keys]] = []
    for number, raw in enumerate(registry.recognizers, start=1):
        place = f"{where}: recognizers, entry {number}"
        kind = _kind(raw)
        if kind is _Class and not trusted:
            hint = "allow it with anonymize.trust_recognizers = true"
            raise ConfigError(f"{place}: `class` runs code of your own; {hint}")
        entry = read_record(kind, raw, place, error=ConfigError)
        unknown = [code for code in entry.languages() if code not in LANGUAGES]
        if unknown:
            raise ConfigError(f"{place}: language {quoted(unknown[0])} is none of {', '.join(LANGUAGES)}")
        if isinstance(entry, _Patterns) and not (entry.patterns or entry.deny_list):
            raise ConfigError(f"{place}: neither patterns nor a deny_list")
        entries.append((place, entry))
    return entries


def _kind(raw: dict[str, Any]) -> type[_Keys]:
    if "class" in raw:
        return _Class
    if str(raw.get("class_name")) in MODEL_CLASSES:
        return _Model
    return _Predefined if "class_name" in raw or raw.get("type") == "predefined" else _Patterns


def _made(where: str, entry: _Keys, registry: UserRegistry, language: str) -> EntityRecognizer:
    try:
        recognizer = entry.build(language, registry.path)
    except MissingExtraError:
        raise
    except H2HTalkError as error:
        raise ConfigError(f"{where} ({entry.name}): {error}") from error
    except Exception as error:  # a class of the user's own may raise anything
        raise ConfigError(f"{where} ({entry.name}) cannot be made: {type(error).__name__}") from error
    if isinstance(recognizer, PatternRecognizer):
        _bound_patterns(where, recognizer)
    _stop_where_it_fails(recognizer)
    return recognizer


def _any_of(words: Sequence[str]) -> str:
    """A regular expression for words: Latin ones stand alone, Chinese ones anywhere."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    han = [re.escape(word) for word in ordered if _HAN.search(word)]
    latin = [re.escape(word) for word in ordered if not _HAN.search(word)]
    return "|".join([*han, *([rf"(?<!\w)(?:{'|'.join(latin)})(?!\w)"] if latin else [])])


class _BoundedRegex:
    """A compiled pattern that is an error where it needs too long; Presidio would go on without it."""

    def __init__(self, compiled: Any, where: str) -> None:
        self._compiled, self._where = compiled, where

    def finditer(self, text: str, timeout: float = _SECONDS) -> Iterator[Any]:
        try:
            yield from self._compiled.finditer(text, timeout=min(timeout, _SECONDS))
        except TimeoutError as error:
            slow = f"{self._where} takes too long on {len(text):,} characters"
            raise ConfigError(f"{slow}; repeat nothing that holds a repetition") from error


def _bound_patterns(where: str, recognizer: PatternRecognizer) -> None:
    """Refuse patterns that backtrack without end, and stop the run where one does in spite of that."""
    for pattern in recognizer.patterns:
        place = f"{where} ({recognizer.name}): pattern {quoted(pattern.name)}"
        flags = recognizer.global_regex_flags
        bounded = _BoundedRegex(regex.compile(pattern.regex, flags), place)
        for probe in () if pattern.name == _DENY_LIST else _PROBES:
            # With its own characters behind: a text that lacks one of them is not searched at all.
            for _ in bounded.finditer(probe + pattern.regex, 1.0):
                pass
        pattern.compiled_regex, pattern.compiled_with_flags = bounded, flags


def _stop_where_it_fails(recognizer: EntityRecognizer) -> None:
    """Make any error of a recogniser an error of the run, and leave out types that it does not announce."""
    analyze = recognizer.analyze

    def checked(text: str, entities: list[str], nlp_artifacts: Any = None) -> list[RecognizerResult]:
        try:
            results = analyze(text, entities, nlp_artifacts) or []
        except H2HTalkError:
            raise
        except Exception as error:  # whatever a model or a user's class raises; its message may hold words of a text
            raise ConfigError(f"recognizer {quoted(recognizer.name)} failed: {type(error).__name__}") from error
        for result in results:
            if not 0 <= result.start < result.end <= len(text):
                place = f"{result.start} to {result.end} is no place of a text of {len(text)} characters"
                raise ConfigError(f"recognizer {quoted(recognizer.name)}: {place}")
        return [result for result in results if result.entity_type in recognizer.supported_entities]

    recognizer.analyze = checked

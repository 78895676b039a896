"""Choose the pipeline that parses a language: the bundled one, or a spaCy pipeline that the user names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from h2htalk.data.files import read_json_object
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError, DataError, MissingExtraError, quoted
from h2htalk.text.parsing.parsing import INSTALL
from h2htalk.version import __version__

BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class ParserModel:
    """A pipeline by the name and version in its own `meta.json`; `source` None is the bundled one."""

    source: str | None
    language: str
    name: str
    version: str


def choose_models(sources: Sequence[str], languages: Iterable[Language]) -> dict[Language, ParserModel]:
    """Choose the pipeline of each language: the one named for it, else the bundled one.

    Args:
        sources: packages or folders of spaCy pipelines; each names its language in `meta.json`.
        languages: those of the split.

    Raises:
        MissingExtraError: spaCy is not installed.
        ConfigError: no such pipeline, one of a language that the split does not have, or two of one language.
    """
    for package in ("spacy", "lemminflect"):
        if find_spec(package) is None:
            raise MissingExtraError("finding verb-noun pairs", INSTALL)
    chosen = {language: ParserModel(None, language, BUNDLED, __version__) for language in languages}
    for source in sources:
        model = _read_model(source)
        language = next((language for language in chosen if language == model.language), None)
        if language is None:
            raise ConfigError(
                f"--spacy-model {quoted(source)} is a pipeline for {quoted(model.language)}; "
                f"the texts analysed are {' and '.join(chosen)}"
            )
        if chosen[language].source is not None:
            raise ConfigError(f"--spacy-model: two pipelines for {language}; name one a language")
        chosen[language] = model
    return chosen


def _read_model(source: str) -> ParserModel:
    if source.strip() and os.path.isdir(source):  # pathlib raises where the name is too long
        folder = Path(source)
    elif source.isidentifier() and (spec := find_spec(source)) and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
    else:
        advice = "name a folder, or install it: python -m spacy download en_core_web_sm"
        raise ConfigError(f"no spaCy pipeline {quoted(source)}: {advice}")
    try:
        meta = read_json_object(folder / "meta.json")
    except (OSError, DataError) as error:
        raise ConfigError(f"--spacy-model {quoted(source)}: no readable meta.json in {folder}") from error
    language, name, version = (meta.get(key) for key in ("lang", "name", "version"))
    if not all(isinstance(text, str) and text for text in (language, name, version)):
        raise ConfigError(f"--spacy-model {quoted(source)}: its meta.json lacks lang, name or version")
    return ParserModel(source, str(language), f"{language}_{name}", str(version))

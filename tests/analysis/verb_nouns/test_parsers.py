"""Which pipeline parses which language, and what a wrong name says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from h2htalk.analysis.verb_nouns.parsers import BUNDLED, choose_models
from h2htalk.errors import ConfigError, MissingExtraError


def pipeline(folder: Path, meta: object) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(meta if isinstance(meta, str) else json.dumps(meta))
    return str(folder)


def test_the_bundled_pipelines_parse_what_nobody_named(tmp_path: Path) -> None:
    named = pipeline(tmp_path / "m", {"lang": "zh", "name": "core_web_sm", "version": "3.8.0", "more": []})
    models = choose_models([named], ["en", "zh"])
    assert (models["en"].source, models["en"].name) == (None, BUNDLED)
    assert (models["zh"].source, models["zh"].name, models["zh"].version) == (
        named,
        "zh_core_web_sm",
        "3.8.0",
    )


def test_an_installed_package_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline(tmp_path / "en_made_sm", {"lang": "en", "name": "made_sm", "version": "1"})
    (tmp_path / "en_made_sm" / "__init__.py").write_text("raise RuntimeError('read, not run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert choose_models(["en_made_sm"], ["en"])["en"].name == "en_made_sm"


def test_a_pipeline_of_a_language_that_the_split_lacks_is_refused(tmp_path: Path) -> None:
    german = pipeline(tmp_path / "de", {"lang": "de", "name": "n", "version": "1"})
    with pytest.raises(ConfigError, match="is a pipeline for 'de'; the texts analysed are en and zh"):
        choose_models([german], ["en", "zh"])
    chinese = pipeline(tmp_path / "zh", {"lang": "zh", "name": "n", "version": "1"})
    with pytest.raises(ConfigError, match="'zh'; the texts analysed are en"):
        choose_models([chinese], ["en"])


def test_two_pipelines_of_one_language_are_refused(tmp_path: Path) -> None:
    one = pipeline(tmp_path / "one", {"lang": "en", "name": "n", "version": "1"})
    with pytest.raises(ConfigError, match="two pipelines for en"):
        choose_models([one, one], ["en"])


@pytest.mark.parametrize(
    "source", ["en_core_web_nowhere", "no such", "../nowhere", "", "json.decoder", "typing", "x" * 5000, "\0"]
)
def test_a_name_that_is_no_pipeline_is_an_error(source: str) -> None:
    with pytest.raises(ConfigError, match=r"no spaCy pipeline .*python -m spacy download"):
        choose_models([source], ["en"])


@pytest.mark.parametrize("meta", ["not JSON", "[]", {"lang": "en"}, {"lang": 3, "name": "n", "version": "1"}])
def test_a_folder_that_is_no_pipeline_is_an_error(tmp_path: Path, meta: object) -> None:
    with pytest.raises(ConfigError, match=r"meta\.json"):
        choose_models([pipeline(tmp_path / "m", meta)], ["en"])
    with pytest.raises(ConfigError, match=r"no readable meta\.json"):
        choose_models([str(tmp_path)], ["en"])


def test_without_spacy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.analysis.verb_nouns.parsers.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[analysis\]"'):
        choose_models([], ["en"])

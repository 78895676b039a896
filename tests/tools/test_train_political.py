"""The trainer of the models of politics, on 200 rows."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
pytest.importorskip("sklearn")
from crisis.left_out import learned
from crisis.texts import CRISIS, EVERYDAY, POLITICAL, Text, by_writer, own
from safety.shipping import read_manifest, write_classifier
from train_political import figures, ordinary, train

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.detect.safety.text_folding import fold_spelling


def texts_of(language: Language) -> list[Text]:
    """100 statements about politics and 100 ordinary messages of several writers."""
    statements = own(POLITICAL, language, "sensitive")[:100]
    written = by_writer(CRISIS, language, "harmless")
    everyday = [(writer, text) for writer in EVERYDAY[language] for text in written[writer][:25]]
    rows = [Text(text, True, 1.0, "own") for text in statements]
    rows += [Text(text, False, 1.0, f"own harmless {writer}") for writer, text in everyday[:100]]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_trainer_makes_a_model_of_200_rows_and_ships_it(
    language: Language, tmp_path: Path
) -> None:
    """A changed constructor ended the trainer in a TypeError, and nothing ran it."""
    material = learned(language, texts_of(language))
    assert len(material.texts) == 200
    assert ordinary(material).sum() == 100
    model, weights = train(material)
    scores = [model.score(fold_spelling(text.text, language)).score for text in material.texts]
    assert np.mean(scores[:100]) > np.mean(scores[100:]) + 0.3
    assert 0 < model.low() < model.high() < 1
    write_classifier(tmp_path, language, dict(model.manifest), weights)
    assert read_manifest(tmp_path, language) == json.loads(json.dumps(model.manifest))
    assert zlib.decompress((tmp_path / f"{language}.weights").read_bytes()) == weights.tobytes()
    shares = figures(model)
    assert 0 <= shares["harmless"] <= 1
    assert 0 <= shares["recall"] <= 1

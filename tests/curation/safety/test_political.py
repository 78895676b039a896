"""Political statements are found, mentions of the same words are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from h2htalk.curation.safety import political
from h2htalk.data.languages import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_development_set(language: Language) -> None:
    path = Path(__file__).parent / f"dev_political_{language}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {
        kind: [political.find_political(r["text"], language) for r in rows if r["kind"] == kind]
        for kind in ("sensitive", "harmless")
    }
    assert sum(one is not None for one in found["sensitive"]) / len(found["sensitive"]) >= 0.85
    assert sum(one is not None for one in found["harmless"]) / len(found["harmless"]) <= 0.2


def test_terms_are_folded_and_comments_ignored(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("# ours\nBlue Lagoon\n\n", encoding="utf-8")
    assert political.read_terms(str(path), "en") == {"blue lagoon"}
    assert political.read_terms("", "en") == frozenset()


def test_for_a_companion_the_classifier_alone_is_not_enough() -> None:
    """Because of long kind replies more than half of a source's dialogues needed a decision by people."""
    text = "If you don't vote blue this year you're part of the problem"
    assert political.find_political(text, "en") is not None
    assert political.find_political(text, "en", seeker=False) is None
    assert political.find_political("The government must be overthrown", "en", seeker=False) is not None
    assert political.find_political("We met at the summit", "en", frozenset({"summit"}), seeker=False) is not None

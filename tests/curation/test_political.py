"""Political statements are seen, mentions of the same words are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from h2htalk.curation import political
from h2htalk.data.dialogue import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_development_set(language: Language) -> None:
    path = Path(__file__).parent / f"dev_political_{language}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {
        kind: [political.find(r["text"], language) for r in rows if r["kind"] == kind]
        for kind in ("sensitive", "harmless")
    }
    assert sum(one is not None for one in found["sensitive"]) / len(found["sensitive"]) >= 0.7
    assert sum(one is not None for one in found["harmless"]) / len(found["harmless"]) <= 0.2


@pytest.mark.parametrize(
    ("text", "language"),
    [("The government must be overthrown", "en"), ("共产党必须下台，人民需要民主选举", "zh")],
)
def test_a_matter_and_a_stance_is_seen_with_its_place(text: str, language: Language) -> None:
    found = political.find(f"{text}. Hm.", language)
    assert found is not None
    assert found.category == political.CATEGORY
    assert 0 <= found.start < found.end <= len(text) + 1


def test_terms_are_read_folded_with_comments_left_out(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("# ours\nBlue Lagoon\n\n", encoding="utf-8")
    assert political.read_terms(str(path), "en") == {"blue lagoon"}
    assert political.read_terms("", "en") == frozenset()

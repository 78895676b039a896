"""Political statements are seen, mentions of the same words are not."""

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
        kind: [political.find(r["text"], language) for r in rows if r["kind"] == kind]
        for kind in ("sensitive", "harmless")
    }
    assert sum(one is not None for one in found["sensitive"]) / len(found["sensitive"]) >= 0.85
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


def test_of_a_companion_the_model_alone_is_not_believed() -> None:
    """Once more than half of a source's dialogues went to a person because of long kind replies."""
    said = "If you don't vote blue this year you're part of the problem"
    assert political.find(said, "en") is not None
    assert political.find(said, "en", seeker=False) is None
    assert political.find("The government must be overthrown", "en", seeker=False) is not None
    assert political.find("We met at the summit", "en", frozenset({"summit"}), seeker=False) is not None


@pytest.mark.parametrize(("language", "writers"), [("en", ("e", "f")), ("zh", ("g", "h"))])
def test_ordinary_days_show_nearly_no_politics(language: Language, writers: tuple[str, ...]) -> None:
    folder = Path(__file__).parents[3] / "tools/crisis"
    texts = [
        line
        for writer in writers
        for line in (folder / f"harmless_{language}_{writer}.txt").read_text(encoding="utf-8").splitlines()
    ]
    assert len(texts) >= 1_400
    assert sum(political.find(text, language) is not None for text in texts) / len(texts) <= 0.01

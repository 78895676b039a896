"""What a disguised text means, and where each of its characters came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.normalization import normalize_text
from h2htalk.curation.anonymize.structured.deobfuscation import deobfuscate


@pytest.mark.parametrize(
    ("text", "language", "meant"),
    [
        ("138然后2736后面是4512", "zh", "138 2736 4512"),
        ("幺三八洞两七三六六四勾", "zh", "13802736649"),
        ("I38O", "en", "1380"),
        ("two double five, oh nine", "en", "255, 09"),
        ("bravo delta five one sierra mike romeo", "en", "bd51smr"),
        ("what a lovely day", "en", None),
        ("今天好累", "zh", None),
        ("one two three four five breathe", "en", None),
    ],
)
def test_a_disguise_reads_as_what_it_means(text: str, language: str, meant: str | None) -> None:
    found = deobfuscate(normalize_text(text), language)
    if meant is None:
        assert found is None
    else:
        assert found is not None
        assert found.normalized.text == meant


_PIECES = st.sampled_from(
    [
        *"0138一幺洞两拐l oI~·、_.-😊",
        "然后",
        "不要",
        "四个6",
        "下划线",
        "bravo ",
        "one ",
        "double ",
        " then ",
        "yao ",
        "ab",
    ]
)


@given(st.lists(_PIECES, max_size=40).map("".join), st.sampled_from(["en", "zh"]))
def test_every_character_of_what_is_meant_stands_for_a_place_of_the_text(text: str, language: str) -> None:
    normalized = normalize_text(text)
    found = deobfuscate(normalized, language)
    if found is not None:
        size = len(found.normalized.text)
        assert len(found.starts) == len(found.ends) == len(found.edited) == size
        assert all(0 <= a < b <= len(normalized.text) for a, b in zip(found.starts, found.ends, strict=True))
        assert list(found.starts) == sorted(found.starts)

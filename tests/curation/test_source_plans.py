"""A source of a specification: a path that cannot be is refused by the source's name, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.source_plans import find_source
from h2htalk.curation.spec import Source
from h2htalk.errors import ConfigError


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("raw\0.jsonl", "null"),
        ("r" * 300, "File name too long"),
        ("~nobody_is_called_so/raw.jsonl", "cannot be a path"),
        ("none.jsonl", "no such file"),
        ("$H2HTALK_NO_SUCH/raw.jsonl", "is not set"),
    ],
)
def test_a_path_that_cannot_be(tmp_path: Path, path: str, told: str) -> None:
    """The first three ended in a traceback."""
    with pytest.raises(ConfigError, match=rf"source 'calls': .*{told}"):
        find_source(Source("calls", path, "messages", "en", "CC0-1.0"), tmp_path, 0)


def test_generated_dialogues_may_stand_in_only_for_a_variable(tmp_path: Path) -> None:
    source = Source("calls", "$H2HTALK_NO_SUCH/raw.jsonl", "messages", "en", "CC0-1.0")
    assert find_source(source, tmp_path, 5) is None

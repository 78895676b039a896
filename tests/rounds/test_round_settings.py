"""Settings of a round."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.errors import ConfigError
from h2htalk.rounds.settings import RoundSpec, make_spec


def test_default_overlaps() -> None:
    assert [
        make_spec(kind, "mini@1", {}).annotators_per_item for kind in ("crowd", "expert", "adjudication", "safety")
    ] == [20, 3, 1, 3]


def test_options_override_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "round.toml"
    path.write_text(
        'overlap = 5\nseed = 3\nannotators = "people.csv"\n[adaptive]\non = true\n[care]\nsession_items = 10\n'
    )
    spec = make_spec("crowd", "mini@1", {"overlap": 7}, path)
    assert (spec.overlap, spec.seed, spec.adaptive.on, spec.care.session_items) == (7, 3, True, 10)
    assert spec.annotators == str(tmp_path / "people.csv")
    assert RoundSpec.from_dict(spec.to_dict(), "x") == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("over_lap = 3", "over_lap: no such field; did you mean 'overlap'"),
        ("[care]\ncrisis_share = 1.5", "care.crisis_share: must be 1 or less"),
        ("overlap = 2\n[adaptive]\non = true", "adaptive.minimum is 3, above the overlap of 2"),
        ("overlap = ", "not readable as TOML"),
        ("kind = 3", None),
    ],
)
def test_invalid_settings(tmp_path: Path, text: str, message: str | None) -> None:
    path = tmp_path / "round.toml"
    path.write_text(text)
    if message is None:  # the command overrides it
        assert make_spec("crowd", "mini@1", {}, path).kind == "crowd"
        return
    with pytest.raises(ConfigError, match=message):
        make_spec("crowd", "mini@1", {}, path)

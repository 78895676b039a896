"""One cache folder for all that is kept between runs, the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.text.tokens import cache_folder


def test_the_cache_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("H2HTALK_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("H2HTALK_CACHE", "~/own")  # jieba's table went to a folder called `~`
    assert cache_folder() == tmp_path / "home" / "own"
    monkeypatch.delenv("H2HTALK_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "h2htalk"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "h2htalk"

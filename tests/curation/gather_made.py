"""Items of raw files for the tests of gather."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.source_files import Item, plan_source
from h2htalk.curation.stages import Source


def read_file(path: str | Path, form: str = "messages", name_keys: tuple[str, ...] = (), **more: Any) -> list[Item]:
    """The items of a source of one file or folder."""
    plan = plan_source(Source("s", str(path), form, "en", "CC0-1.0", **more), Path("/"))
    return list(replace(plan, name_keys=name_keys).items(lambda size: None))

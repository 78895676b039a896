"""Every reason that the funnel prints is explained on the page of the stages."""

from __future__ import annotations

import re
from pathlib import Path

import h2htalk.curation

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "curation-stages.md"
# Where the code gives a reason: an error of a refused item or draft, or what is extracted of a dialogue.
GIVEN = re.compile(
    r'(?:RefusedItem|RefusedDraft|Extracted)\((?:\(\), )?\s*f?"([a-z_]+(?::[a-z_]+)?)["(:{]'
)
REJECTED = re.compile(r'Rejected\([\w.()\[\]"]+(?:, ""\))*, f?"([a-z_]+)["(:{]')


def reasons() -> set[str]:
    folder = Path(h2htalk.curation.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    return {
        reason
        for text in texts
        for pattern in (GIVEN, REJECTED)
        for reason in pattern.findall(text)
    }


def test_every_reason_of_the_funnel_has_a_row() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Reasons in the funnel")[2]
    explained = set(re.findall(r"`([a-z_:]+)(?:[A-Z]+)?`", section))
    groups = {name.rstrip(":") for name in explained if name.endswith(":")}  # of `contract:RULE`
    found = reasons()
    assert {"unwritten", "group", "broken", "persona", "inputs:turn", "no_content"} <= found
    missing = {one for one in found - explained if one.partition(":")[0] not in groups}
    assert sorted(missing) == []

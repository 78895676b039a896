"""Rule of Chinese employers, schools and clinics."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.detect.personal.chinese.words import usual
from h2htalk.detect.personal.structured.reading import Hit, Reading, patterns

_BODY = patterns("chinese_organizations")
_CUES_OF_BODIES = ("place", "works_there", "begins", "called", "enters", "enters_school")


def han_organizations(reading: Reading) -> Iterator[Hit]:
    """Employers, schools and clinics by how their names end, beside a word that somebody works, learns or is there."""
    matches: list[re.Match[str]] = []
    for cue in _CUES_OF_BODIES:
        matches += _BODY[cue].finditer(reading.text)
    for match in sorted(matches, key=lambda match: (match.start("name"), -match.end("name"))):
        # No words of everyday language, unless the cue tells enough.
        specific = match.groupdict().get("own")
        if specific is None or not all(map(usual, re.findall("..", specific))):
            yield match.start("name"), match.end("name"), 0.7

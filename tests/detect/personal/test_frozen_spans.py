"""The spans of 300 frozen lines, compared byte for byte: the same under every version of Python that CI runs.

The lines are of the sets in `tests/curation/golden`, and 20 a language with apostrophes, hyphens and words that are
names too. Who changes a rule remakes the file and reads the
diff: `python tests/detect/personal/test_frozen_spans.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from h2htalk.detect.personal.engine.analyzer import find_spans

FROZEN = Path(__file__).parent / "sets" / "frozen_spans.jsonl"


def found_again() -> str:
    """The frozen file as the anonymiser makes it here."""
    lines = []
    for line in FROZEN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        spans = [
            [span.type, span.start, span.end] for span in find_spans(row["text"], row["language"])
        ]
        lines.append(json.dumps({**row, "spans": spans}, ensure_ascii=False) + "\n")
    return "".join(lines)


def test_the_spans_of_the_frozen_lines_are_the_same_under_every_python() -> None:
    """3.11.2 found `Bethan'` where 3.11.7 found `Bethan`."""
    frozen = FROZEN.read_bytes()
    found = found_again().encode("utf-8")
    assert found.splitlines() == frozen.splitlines()  # for its message
    assert found == frozen
    assert len(frozen.splitlines()) == 300


if __name__ == "__main__":
    FROZEN.write_text(found_again(), encoding="utf-8")

"""Write the help directory of the package from its evidence: `python tools/make_help_lines.py`.

`help_directory/evidence.jsonl`: a service a line, with the sentence of the page that holds its number, and the page's
own date where it shows one (`page_date`); `help_directory/emergency.jsonl`: the emergency numbers of a country, with
the entry of a public list, or the expression of libphonenumber's metadata that they match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2htalk.text.help_lines import number_digits, read_help_lines
from h2htalk.text.language_data import PACKAGE, read_data

EVIDENCE = Path(__file__).parent / "help_directory"
FILES = {"evidence.jsonl": "help_services.jsonl", "emergency.jsonl": "emergency_numbers.jsonl"}
HOURS = re.compile(r"24/7||((daily|[A-Z][a-z]{2}(-[A-Z][a-z]{2})?)(, )?)+ [0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}(; .*)?")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EVIDENCE / name).read_text(encoding="utf-8").splitlines()]


def holds(sentence: str, number: str) -> bool:
    """Whether a number stands in a sentence, however its digits are grouped."""
    digits = r"[\sA-Z().\-\u2010-\u2013/]*".join(number_digits(number))
    return re.search(rf"(?<!\d){digits}(?!\d)", sentence) is not None


def wrong() -> Iterator[str]:
    """What is wrong with the evidence: a number that its sentence does not hold, a number twice, an unknown word."""
    topics, seen = read_data(PACKAGE / "text/help_lines.toml")["wording"]["en"]["topics"], set()
    for one in rows("evidence.jsonl"):
        where, digits = f"{one['country']} {one['name']}", number_digits(one["number"])
        if not holds(one["sentence"], one["number"]):
            yield f"{where}: its sentence does not hold {one['number']}"
        if (one["country"], digits) in seen:
            yield f"{where}: {one['number']} stands there twice"
        if one["topic"] not in topics or not HOURS.fullmatch(one["hours"]):
            yield f"{where}: topic {one['topic']!r}, hours {one['hours']!r}"
        if not one["url"].startswith(("https://", "http://")):
            yield f"{where}: {one['url']} is no address"
        seen.add((one["country"], digits))
    for one in rows("emergency.jsonl"):
        for entry in one["emergency"]:
            number, pattern = entry["number"], one.get("pattern")
            if not (re.fullmatch(pattern, number) if pattern else holds(one["sentence"], number)):
                yield f"{one['code']}: {number} is not in its evidence"


def main() -> None:
    if found := list(wrong()):
        raise SystemExit("\n".join(found))
    for name, target in FILES.items():
        left_out = ("sentence", "page_date") if name == "evidence.jsonl" else ("sentence", "pattern", "url", "date")
        kept = [{key: row[key] for key in row if key not in left_out} for row in rows(name)]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
        (PACKAGE / "text" / target).write_text("".join(lines), encoding="utf-8")
    read_help_lines()


if __name__ == "__main__":
    main()

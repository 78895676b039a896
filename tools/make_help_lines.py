"""Write the help directory of the package from its evidence: `python tools/make_help_lines.py`.

`help_directory/evidence.jsonl`: a service a line, with the sentence of the page that holds its number, the page's date
(`page_date`), its `publisher` in countries of the overview, and the page of its hours if another (`hours_from`);
`help_directory/emergency.jsonl`: a country's numbers with the entry of a public list or libphonenumber's expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2htalk.text.help_lines import EmergencyNumbers, HelpService, number_digits, read_help_lines
from h2htalk.text.language_data import PACKAGE, read_data

EVIDENCE = Path(__file__).parent / "help_directory"
FILES = {"evidence.jsonl": "help_services.jsonl", "emergency.jsonl": "emergency_numbers.jsonl"}
HOURS = re.compile(
    r"24/7||at least \d+ hours a day|((daily|[A-Z]\w\w(-[A-Z]\w\w)?)(, )?)+ \d\d:\d\d-\d\d:\d\d(; .*)?"
)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EVIDENCE / name).read_text(encoding="utf-8").splitlines()]


def holds(sentence: str, number: str) -> bool:
    """Whether a number stands in a sentence, however its digits are grouped."""
    digits = r"[\sA-Z().\-\u2010-\u2013/]*".join(number_digits(number))
    return re.search(rf"(?<!\d){digits}(?!\d)", sentence) is not None


def wrong() -> Iterator[str]:
    """What is wrong with the evidence: a number that its sentence does not hold, a number twice, an unknown word."""
    topics = read_data(PACKAGE / "text/help_lines.toml")["wording"]["en"]["topics"]
    seen = set()
    for one in rows("evidence.jsonl"):
        where = f"{one['country']} {one['name']}"
        digits = number_digits(one["number"])
        if not holds(
            one["sentence"], one["number"].removeprefix("1-")
        ):  # 1: the trunk prefix of North America
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
            number = entry["number"]
            pattern = one.get("pattern")
            if not (re.fullmatch(pattern, number) if pattern else holds(one["sentence"], number)):
                yield f"{one['code']}: {number} is not in its evidence"


def main() -> None:
    if found := list(wrong()):
        raise SystemExit("\n".join(found))
    for name, target in FILES.items():
        record = HelpService if name == "evidence.jsonl" else EmergencyNumbers
        kept = [
            {key: row[key] for key in row if key in record.__dataclass_fields__}
            for row in rows(name)
        ]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
        (PACKAGE / "text" / target).write_text("".join(lines), encoding="utf-8")
    read_help_lines()


if __name__ == "__main__":
    main()

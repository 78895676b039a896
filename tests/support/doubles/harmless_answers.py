"""What a reader answers to the safety questions where nothing is the matter."""

from __future__ import annotations

from typing import Any

HARMLESS: dict[str, Any] = {
    "harm": "",
    "severity": 0,
    "explicit": False,
    "under_18": False,
    "danger_what": "",
    "danger": "none",
    "personal_data": "",
    "known_by": "",
}

"""The journal of paid calls as it is read: strictly, but for a last line that a kill tore."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.chat.costs.cost_log import RunningTotals, read_cost_log
from h2htalk.chat.costs.ledger import Ledger
from h2htalk.errors import DataError


def opened(path: Path) -> Ledger:
    return Ledger(path, model="openai:m", price=None).open()


SENT = '{"event":"sent","call":1,"items":[["a",0]],"bound":[1,1],"usd":"0.1"}'
FREE = '{"event":"free","call":1,"reason":"x"}'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nonsense", 1),
        ("{}", 1),
        ('{"event":"opened","stage":"generate","model":1,"prices":""}', 1),
        ('{"event":"opened","stage":"generate"}', 1),
        (SENT.replace('"call":1', '"call":2'), 1),
        (SENT.replace('"call":1', '"call":true'), 1),
        (SENT.replace('["a",0]', '"a"'), 1),
        (SENT.replace('["a",0]', '["a",-1]'), 1),
        (SENT.replace("[1,1]", "[1]"), 1),
        (SENT.replace('"0.1"', "0.1"), 1),
        (SENT.replace('"0.1"', '"-0.1"'), 1),
        (SENT.replace('"0.1"', '"NaN"'), 1),
        (SENT.replace('"0.1"', '"much"'), 1),
        (SENT.replace("}", ',"batch":5}'), 1),
        (f"{SENT}\n{SENT}", 2),
        (FREE, 1),
        (f"{SENT}\n{FREE}\n{FREE}", 3),
        (f'{SENT}\n{{"event":"free","call":1}}', 2),
        (f'{SENT}\n{{"event":"paid","call":1}}', 2),
        (f'{SENT}\n{{"event":"paid","call":1,"usd":"1","usage":{{"input_tokens":-1}}}}', 2),
        (f'{SENT}\n{{"event":"paid","call":1,"usd":"1","request_id":7}}', 2),
        (f'{SENT}\n{{"event":"paid","call":1,"usd":"1e30"}}', 2),
        (f'{SENT}\n{{"event":"paid","call":1,"usd":"1_0"}}', 2),
        (f'{SENT}\n{{"event":"refunded","call":1}}', 2),
    ],
)
def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "generate.jsonl"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"^{path}:{line}: "):
        opened(path)
    assert path.read_text(encoding="utf-8") == text + "\n"


def test_a_torn_last_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "generate.jsonl"
    path.write_text(f'{SENT}\n{{"event":"paid","call":1,"us', encoding="utf-8")
    assert list(read_cost_log(path, RunningTotals())) == []
    with opened(path) as ledger:
        assert ledger.totals().possibly_paid == 1

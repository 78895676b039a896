"""The forms of other harnesses' logs, and how a path shows which one it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from h2htalk.data.files import read_jsonl
from h2htalk.data.imports.harness_log import HarnessLog
from h2htalk.data.imports.inspect_log import read_inspect
from h2htalk.data.imports.lm_eval_samples import read_lm_eval
from h2htalk.data.imports.opencompass_results import read_opencompass
from h2htalk.data.imports.score_files import read_every_eval_ever, read_score_table
from h2htalk.errors import DataError, quoted

_READERS = {".eval": read_inspect, ".json": read_inspect, ".csv": read_score_table}
FORMS = "an Inspect log (.eval, .json), lm-eval or Every Eval Ever samples (.jsonl), an OpenCompass folder or a CSV"


def read_harness_log(path: Path) -> HarnessLog:
    """Read a log. Raises DataError: it has none of the forms, is damaged, or holds an answer twice."""
    try:
        log = _reader(path)(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        problem = f"{type(error).__name__}: {quoted(str(error))}"
        raise DataError(f"{path}: is not in the form that its name promises ({problem})") from error
    seen = set()
    for record in log.records:
        if (record.item, record.epoch) in seen:
            raise DataError(f"{path}: {quoted(record.item)} has two answers with the number {record.epoch}; keep one")
        seen.add((record.item, record.epoch))
    return log


def _reader(path: Path) -> Callable[[Path], HarnessLog]:
    if path.is_dir():
        return read_opencompass
    if not path.is_file() or path.suffix not in (*_READERS, ".jsonl"):
        raise DataError(f"{path}: is neither a run folder nor {FORMS}")
    if path.suffix in _READERS:
        return _READERS[path.suffix]
    _, first = next(read_jsonl(path, nan=True), ("", {}))
    if "doc_id" in first:
        return read_lm_eval
    if "evaluation" in first:
        return read_every_eval_ever
    raise DataError(f"{path}: its first line is neither one of lm-eval's samples nor of Every Eval Ever's")

"""Every module of the package can be imported by the Python that runs the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Other harnesses read these in environments of their own.
FOREIGN = ("lm_eval", "evalscope", "opencompass", "inspect_ai")
# Prints what could not be imported: the module, and the error.
IMPORT_ALL = """
import importlib, json, sys
from h2htalk.errors import MissingExtraError
errors = {}
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        errors[name] = (error.name or "").partition(".")[0]
    except MissingExtraError:
        errors[name] = "an extra"
    except BaseException as error:
        errors[name] = repr(error)
print(json.dumps(errors))
"""


def module_name(path: Path) -> str:
    names = path.relative_to(ROOT).with_suffix("").parts
    if names[-1] == "__init__":
        names = names[:-1]
    return ".".join(names)


def test_every_module_can_be_imported() -> None:
    """A module may lack a package of an extra that is not installed, and nothing else."""
    paths = sorted((ROOT / "h2htalk").rglob("*.py"))
    names = [module_name(path) for path in paths if path.name != "__main__.py"]
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(names)],
        capture_output=True,
        text=True,
        check=True,
    )
    errors = json.loads(result.stdout.splitlines()[-1])
    integrations = {name for name in errors if name.startswith("h2htalk.integrations.")}
    lacking = {"torch", "transformers", "ray"}
    assert {errors[name] for name in integrations} <= {"an extra", *FOREIGN}
    assert {errors[name] for name in errors.keys() - integrations} <= lacking
    assert len(errors) < len(names) / 10

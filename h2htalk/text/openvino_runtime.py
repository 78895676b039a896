"""Import OpenVINO without its telemetry.

`import openvino` sends an event to an analytics service and leaves a client id in the user's home unless the
package `openvino_telemetry` is missing; then OpenVINO uses a stub of its own. Here it is hidden while
OpenVINO is imported: an evaluation of private conversations contacts only what the user named.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Literal

from h2htalk.errors import MissingExtraError
from h2htalk.text.model_files import INSTALL_EMBEDDED

_TELEMETRY = "openvino_telemetry"


def import_openvino(name: Literal["openvino", "openvino_genai"], feature: str) -> ModuleType:
    """Import a module of OpenVINO; `feature` is what needs it, for the error message.

    Raises:
        MissingExtraError: OpenVINO is not installed.
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

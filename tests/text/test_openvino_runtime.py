"""OpenVINO is imported without its telemetry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.errors import MissingExtraError
from h2htalk.text.openvino_runtime import import_openvino

CHECK = """
import sys
from h2htalk.text.openvino_runtime import import_openvino

for name in ("openvino", "openvino_genai"):
    import_openvino(name, "this test")
assert "openvino" in sys.modules
print([name for name in sys.modules if "openvino_telemetry" in name])
"""


@pytest.mark.embedded
def test_importing_openvino_sends_nothing_and_leaves_no_client_id(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the embedded extra is not installed")
    # Telemetry switches itself off where these are set.
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "TF_BUILD", "JENKINS_URL")}
    environment["HOME"] = str(tmp_path)
    command = [sys.executable, "-c", CHECK]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    assert not (tmp_path / "intel").exists()


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino_genai", None)
    with pytest.raises(MissingExtraError, match=r"this test needs .*pip install 'h2htalk\[embedded\]'"):
        import_openvino("openvino_genai", "this test")
    assert "openvino_telemetry" not in sys.modules or sys.modules["openvino_telemetry"] is not None

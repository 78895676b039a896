"""The tokens that every lexical score stands on: sacreBLEU's 13a for English, jieba for Chinese, nothing guessed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jieba
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from h2htalk.text.tokens import tokenize, tokenizer_signature


@pytest.fixture(scope="module", autouse=True)
def own_jieba_table(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The oracle keeps its table where these tests may write."""
    jieba.dt.tmp_dir = str(tmp_path_factory.mktemp("jieba"))


@given(text=st.text())
def test_any_text_has_tokens_in_both_languages(text: str) -> None:
    assert tokenize(text, "en") == Tokenizer13a()(text.lower()).split()
    assert tokenize(text, "zh") == jieba.lcut(text)
    assert "".join(tokenize(text, "zh")) == text


@pytest.mark.parametrize(
    "text",
    [
        "我" * 2000,
        "今天我们去公园玩，" * 2000,
        ("很" * 1999 + "a") * 3,
        "今天去北京。" + "，".join("我们在清华大学读书" * 200 for _ in range(4)),
    ],
    ids=["a run of 2,000", "sentences", "runs with a letter between", "long sentences"],
)
def test_long_chinese_texts_are_jiebas_own_tokens(text: str) -> None:
    assert tokenize(text, "zh") == jieba.lcut(text)


def test_a_run_of_more_than_2000_han_characters_is_cut_after_every_2000() -> None:
    run = "今天天气很好我们去公园散步吧" * 300  # 4,200: word edges do not fall on 2,000
    text = f"她说：{run}，OK？{'哈' * 2001}"
    pieces = [f"她说：{run[:2000]}", run[2000:4000], f"{run[4000:]}，OK？{'哈' * 2000}", "哈"]
    assert tokenize(text, "zh") == [token for piece in pieces for token in jieba.lcut(piece)]
    expected = f"en=13a.lc-sacrebleu{version('sacrebleu')},zh=jieba{version('jieba')}.run2000"
    assert tokenizer_signature() == expected


CUT = """
import sys
from h2htalk.text import tokens
assert not {"jieba", "sacrebleu"} & set(sys.modules), "imported before they are needed"
tokens.tokenize("hello", "en")
assert "jieba" not in sys.modules, "English needs no jieba"
print(tokens.tokenize("我来到北京清华大学", "zh"))
"""


def test_jiebas_table_lies_in_the_users_cache_and_not_in_the_shared_temporary_folder(
    tmp_path: Path,
) -> None:
    """Anyone can lay a table ready in the shared folder, and jieba would load it."""
    home = tmp_path / "home"
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "jieba.cache").write_bytes(b"laid ready by somebody else")
    env = {k: v for k, v in os.environ.items() if k not in ("H2HTALK_CACHE", "XDG_CACHE_HOME")}
    env |= {"HOME": str(home), "TMPDIR": str(shared)}
    done = subprocess.run(
        [sys.executable, "-c", CUT], env=env, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("['我', '来到', '北京', '清华大学']\n", "")
    assert (home / ".cache" / "h2htalk" / "jieba.cache").is_file()
    assert {p.name: p.read_bytes() for p in shared.iterdir()} == {
        "jieba.cache": b"laid ready by somebody else"
    }

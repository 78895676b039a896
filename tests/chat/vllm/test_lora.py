"""LoRA adapters are held against the model before any engine starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_llama import TINY

from h2htalk.chat.vllm.engine import CONFIG, WEIGHTS, check_fits, find_adapter
from h2htalk.errors import ConfigError

pytestmark = pytest.mark.local
torch = pytest.importorskip("torch", reason="adapters are torch's")
transformers = pytest.importorskip("transformers", reason="checks shapes with transformers")


def write_adapter(folder: Path, rank: int = 4, inputs: int = 64, layer: int = 1, **config: Any) -> Path:
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    module = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
    matrices = {"A": torch.ones(rank, inputs), "B": torch.ones(64, rank)}
    save_file({f"{module}.lora_{side}.weight": one for side, one in matrices.items()}, folder / WEIGHTS)
    values = {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["q_proj"], **config}
    (folder / CONFIG).write_text(json.dumps(values))
    return folder


def test_the_identity_is_of_weights_and_scaling_but_not_of_the_place(tmp_path: Path) -> None:
    places = (tmp_path / "kind", tmp_path / "there" / "kind")
    here, there = (find_adapter(str(write_adapter(place))).identity() for place in places)
    louder = find_adapter(str(write_adapter(tmp_path / "louder", lora_alpha=16))).identity()
    assert (here["lora"], here == there, here["lora_sha256"] == louder["lora_sha256"]) == ("kind", True, False)


@pytest.mark.parametrize(
    ("made", "config", "message"),
    [
        ({"layer": 2}, {}, r"model\.layers\.2\.self_attn\.q_proj\.lora_A is a matrix of .*, where the model has none"),
        ({"inputs": 32}, {}, r"is a matrix of \(4, 32\), where \(4, 64\) fits"),
        ({}, {"hidden_size": 128}, r"is a matrix of \(4, 64\), where \(4, 128\) fits"),
        # vLLM divides by the configuration's rank: it would lay the adapter on twice as strongly.
        ({"r": 2}, {}, r"is a matrix of \(4, 64\), where \(2, 64\) fits"),
    ],
)
def test_adapters_of_another_model(made: dict[str, int], config: dict[str, int], message: str, tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a", **made)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=rf"lora=a: does not fit vllm:tiny: .*{message}; name the model"):
        check_fits(find_adapter(str(folder)), transformers.LlamaConfig(**(TINY | config)), "vllm:tiny")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("{", "JSONDecodeError"),
        ('{"peft_type": "IA3", "r": 4}', "a IA3 of rank 4, not a LORA"),
        ('{"peft_type": "LORA", "r": 1024}', "a LORA of rank 1024, not a LORA of 1 to 512"),
    ],
)
def test_what_is_no_adapter_is_one_line_of_advice(config: str, reason: str, tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / CONFIG).write_text(config)
    with pytest.raises(ConfigError, match=rf"^lora=a: .*{reason}.*$"):
        find_adapter(str(folder))


@pytest.mark.parametrize("name", ["/no/such/folder", "nobody/no-such-adapter"])
def test_an_adapter_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"name OWNER/NAME on the Hub, or a folder that holds adapter_config\.json"):
        find_adapter(name)

"""Write the packaged SmolLM2-135M-Instruct GGUF as a transformers checkpoint, for `hf:` and for servers.

python tools/export_smollm2.py OUT_DIR

OUT_DIR gets model.safetensors, config.json, generation_config.json, the tokenizer and its chat template. The
weights are the GGUF's Q4_1 values, unpacked: no quality is gained. In float32 (513 MB) the checkpoint is the
model that the GGUF describes, value for value.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from h2htalk.errors import ConfigError
from h2htalk.text.model_files import SMOLLM2_GGUF, find_packaged

END_OF_TURN = "<|im_end|>"


def export(folder: Path) -> Path:
    """Write the checkpoint into a new or empty folder; returns the folder.

    Raises:
        ConfigError: the folder holds files, or the GGUF was changed.
        MissingExtraError: the package of the weights is not installed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: not an empty folder; name a new one")
    model, tokenizer = load_gguf(find_packaged(SMOLLM2_GGUF, "the exporter"))
    write_checkpoint(model, tokenizer, folder)
    return folder


def load_gguf(path: Path) -> tuple[Any, Any]:
    """Model (unpacked to float32) and tokenizer as transformers reads them from the GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, dtype=torch.float32, gguf_file=path.name
    )
    return model.eval(), tokenizer


def write_checkpoint(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write what `load_gguf` gave as a checkpoint whose answers end with the template's end of turn."""
    import copy

    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    # transformers takes a model read from a GGUF for a quantized one and refuses to save it: its values move
    # into one made from the configuration alone.
    config = copy.deepcopy(model.config)
    del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    end = tokenizer.convert_tokens_to_ids(END_OF_TURN)
    plain.generation_config = GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=end, pad_token_id=end
    )
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes files that only their owner may read


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="OUT_DIR")
    print(export(parser.parse_args().folder))


if __name__ == "__main__":
    main()

"""Open a transformers checkpoint from a folder or the Hub, without its log output, and with errors of one line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.extras import LOCAL_MODEL

_SETTINGS = (
    "config",
    "generation_config",
    "tokenizer",
    "special_tokens",
    "added_tokens",
    "vocab",
    "merges",
)


@dataclass(frozen=True, slots=True)
class Description:
    """All of a checkpoint except its weights."""

    location: str  # the first argument of `from_pretrained`
    folder: Path | None  # None: a repository of the Hub
    config: Any
    generation_config: Any
    tokenizer: Any
    commit: str | None  # of a repository

    def identity(self) -> dict[str, str]:
        """Return `model`, and the Hub's commit or the SHA-256 of the folder's weights and settings."""
        if self.folder is None:
            return {"model": self.location, "revision": str(self.commit)}
        # Settings decide an answer too: those of the architecture, the tokenizer, the stop tokens.
        settings = []
        for file in self.folder.iterdir():
            if file.is_file() and file.name.startswith(_SETTINGS):
                settings.append(file)
        return {
            "model": self.folder.resolve().name,
            "weights_sha256": hash_files(self.folder.glob("*.safetensors")),
            "settings_sha256": hash_files(settings),
        }

    def stop_tokens(self) -> frozenset[int]:
        """Return every token that ends an answer: those of the generation config, and the tokenizer's."""
        listed = self.generation_config.eos_token_id
        tokens = [*listed] if isinstance(listed, list) else [listed]
        tokens.append(self.tokenizer.eos_token_id)
        return frozenset(token for token in tokens if token is not None)

    def precision(self) -> str:
        """Return the precision that the checkpoint names; `auto` where it names none."""
        precision = getattr(self.config.get_text_config(), "dtype", None) or "auto"
        return str(precision).removeprefix("torch.")

    def quantization(self) -> str | None:
        """Return the method of a quantised checkpoint."""
        settings = getattr(self.config, "quantization_config", None) or {}
        return settings.get("quant_method")

    def context_tokens(self) -> int | None:
        """Return how many tokens prompt and answer may have together; None where the configuration has no limit."""
        limit = getattr(self.config.get_text_config(), "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else None


def library_versions() -> str:
    """Name the libraries and their versions, torch's with its build: `transformers 5.23.0, torch 2.13.0+cu130`."""
    names = ("transformers", "torch")
    return ", ".join(f"{name} {import_module(name).__version__}" for name in names)


def hash_files(files: Iterable[Path]) -> str:
    """Return one SHA-256 of the names and contents of files of one folder."""
    lines = [f"{file.name} {sha256_of(file)}\n" for file in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def open_checkpoint(name: str, download: bool = False) -> tuple[Description, Any]:
    """Load a checkpoint and its model: on the GPU in its own precision, on the CPU in float32.

    Only safetensors are read (no pickle), and no code of the checkpoint is run. `name`: see `describe_checkpoint`.
    Raises ConfigError where there is no such model, or it cannot be run; MissingExtraError without its packages."""
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtraError(LOCAL_MODEL.feature, LOCAL_MODEL.install) from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    description = describe_checkpoint("hf", name, download)
    with _loading(f"hf:{name}", description.folder):
        model, loading = transformers.AutoModelForCausalLM.from_pretrained(
            description.location,
            config=description.config,
            dtype="auto" if device == "cuda" else torch.float32,
            use_safetensors=True,
            output_loading_info=True,
            **_options(download, description.commit),
        )
        model.to(device).eval()
    misshapen = [str(key) for key in loading["mismatched_keys"]]
    unusable = sorted([*loading["missing_keys"], *misshapen])
    if unusable:  # transformers would use random numbers in their place
        raise ConfigError(
            f"hf:{name}: {len(unusable)} weights are missing or misshapen, such as {unusable[0]}"
        )
    return description, model


def describe_checkpoint(
    engine: str,
    name: str,
    download: bool = False,
    revision: str | None = None,
    tokenizer: str | None = None,
) -> Description:
    """Read a checkpoint's configuration and tokenizer, and check that its weights are safetensors.

    `name`: a folder, or `OWNER/NAME` on the Hub, which `download` may fetch; `revision`: branch, tag or commit of a
    repository; `tokenizer`: another folder or repository that it comes from. Raises ConfigError for a model or
    tokenizer that is not there or not whole.
    """
    import transformers
    from huggingface_hub import try_to_load_from_cache

    where = f"{engine}:{name}"
    folder = _find_folder(engine, name)
    problem = ""
    if folder is not None and not any(folder.glob("*.safetensors")):
        problem = (
            "contains no *.safetensors, and no other weights are read (no pickle); convert them"
        )
    elif folder is not None and revision:
        problem = "a folder has no revisions: leave out the engine option revision"
    elif folder is None and not download and not try_to_load_from_cache(name, "config.json"):
        fetch = f"fetch it with --download or `hf download {name}`"
        problem = f"not in the local Hugging Face cache: {fetch}, or name a folder"
    if problem:
        raise ConfigError(f"{where}: {problem}")
    location = str(folder or name)
    with _loading(where, folder):
        options = _options(download, revision)
        config = transformers.AutoConfig.from_pretrained(location, **options)
        commit = None if folder else getattr(config, "_commit_hash", None)
        options = _options(download, commit or revision)
        try:
            generation = transformers.GenerationConfig.from_pretrained(location, **options)
        except OSError:
            # One that cannot be read is an error: transformers would ignore it, and no answer would end.
            if folder is not None and (folder / transformers.utils.GENERATION_CONFIG_NAME).exists():
                raise
            # It is optional; the model's configuration then names the end of text.
            generation = transformers.GenerationConfig.from_model_config(config)
    tokenizer_folder = folder
    if tokenizer:
        tokenizer_folder = _find_folder(engine, tokenizer)
        options = _options(download)
    with _loading(f"{engine}:{tokenizer or name}", tokenizer_folder):
        tokenizer_location = str(tokenizer_folder or tokenizer or name)
        opened = transformers.AutoTokenizer.from_pretrained(tokenizer_location, **options)
    return Description(
        location=location,
        folder=folder,
        config=config,
        generation_config=generation,
        tokenizer=opened,
        commit=commit,
    )


def _find_folder(engine: str, name: str) -> Path | None:
    """Return the folder that `name` is, None for a repository of the Hub; raise ConfigError where it can be neither."""
    if not name:
        raise ConfigError(
            f"{engine} needs a model: {engine}:OWNER/NAME on the Hugging Face Hub, or {engine}:FOLDER"
        )
    path = Path(name).expanduser()
    if (path / "config.json").is_file():
        return path
    # A Hub name is `name` or `owner/name`; any other name must be a folder.
    if path.exists() or name.count("/") > 1 or name[0] in "./~":
        raise ConfigError(
            f"{engine}:{name}: not a folder with a config.json; name one, or OWNER/NAME on the Hub"
        )
    return None


def _options(download: bool, revision: str | None = None) -> dict[str, Any]:
    """Arguments of every `from_pretrained`: no code of the checkpoint runs; only `download` uses the network."""
    return {
        "trust_remote_code": False,
        "local_files_only": not download,
        "revision": revision or "main",
    }


@contextmanager
def _loading(where: str, folder: Path | None) -> Iterator[None]:
    """Read a checkpoint without progress bars and notices on stderr; an error becomes a ConfigError of one line."""
    from huggingface_hub.utils import logging as hub_logging
    from safetensors import SafetensorError
    from transformers.utils import logging

    # Otherwise transformers asks the Hub to convert a repository without safetensors.
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
    verbosities = [(log, log.get_verbosity()) for log in (logging, hub_logging)]
    had_bars = logging.is_progress_bar_enabled()
    for log, _ in verbosities:
        log.set_verbosity(logging.ERROR)
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        advice = "check that the checkpoint is complete"
        if not folder:
            advice = "check the connection, the name and your access on the Hub, or name a folder"
        if "trust_remote_code" in reason:
            reason = "the model needs code of its own, which h2htalk never runs"
            advice = "serve it and use server:MODEL@URL"
        elif "instantiate the backend tokenizer" in reason:
            # The text is long and about other packages.
            reason = "its tokenizer cannot be read: tokenizer.json is missing or damaged"
        reason = reason[:300].rstrip(".")
        raise ConfigError(f"{where}: cannot be loaded: {reason}; {advice}") from error
    finally:
        for log, verbosity in verbosities:
            log.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()

"""Run commands where no optional package can be imported, and record what they read, whom they ask and what they say.

A program of its own: `python needs_probe.py COMMANDS.json`, in a folder whose files the commands name. It prints a JSON
object for each command: exit code, message, CPU seconds, files of the folder that were opened, and addresses.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

HIDDEN = (
    *(
        "spacy",
        "thinc",
        "lemminflect",
        "wordcloud",
        "matplotlib",
        "presidio_analyzer",
        "presidio_anonymizer",
    ),
    *(
        "phonenumbers",
        "stdnum",
        "faker",
        "ahocorasick",
        "pycld2",
        "datasketch",
        "selectolax",
        "argilla",
        "krippendorff",
    ),
    *(
        "openpyxl",
        "datasets",
        "mlcroissant",
        "torch",
        "transformers",
        "gguf",
        "FlagEmbedding",
        "sentence_transformers",
    ),
    *(
        "vllm",
        "pandas",
        "ray",
        "lm_eval",
        "evalscope",
        "inspect_ai",
        "openvino",
        "openvino_genai",
        "tokenizers",
    ),
    "safetensors",
)
opened: list[str] = []
names_of_needs: list[str] = []


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = Path(os.fsdecode(arguments[0])).absolute()
        # An editable installation has an entry on the path that is no file.
        is_code = path.suffix == ".pyc" or path.name.endswith(".__path_hook__")
        if path.is_relative_to(Path.cwd()) and not is_code:
            opened.append(str(path.relative_to(Path.cwd())))
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        names_of_needs.append(f"{event} {arguments[1:]}")


def main() -> None:
    for name in HIDDEN:
        sys.modules[name] = None  # type: ignore[assignment]  # the import system reads None as "missing"
    from h2htalk.cli import main as command_line

    sys.addaudithook(watch)
    for words in json.loads(sys.argv[1]):
        opened.clear()
        names_of_needs.clear()
        sys.argv = ["h2htalk", *words]
        output = io.StringIO()
        code = 0
        start = time.process_time()
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            try:
                command_line()
            except SystemExit as end:
                code = int(end.code or 0)
            except Exception as error:  # noqa: BLE001  a traceback is a finding of the test
                output.write(f"TRACEBACK {error!r}")
                code = 1
        seconds = time.process_time() - start
        first_needs = {
            "code": code,
            "message": output.getvalue(),
            "seconds": seconds,
            "opened": opened,
            "asked": names_of_needs,
        }
        sys.__stdout__.write(json.dumps(first_needs) + "\n")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()

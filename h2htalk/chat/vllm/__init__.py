"""Answer requests with vLLM on this machine's GPUs or CPU; read `engine` first."""

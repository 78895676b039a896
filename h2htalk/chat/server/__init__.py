"""Answer requests through an OpenAI-compatible server at a URL; read `engine` first."""

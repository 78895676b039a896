"""Ask a model once and keep every reply: stored calls, cost limit, prompts."""

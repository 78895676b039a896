"""Talk to a model: one protocol, one module a backend."""

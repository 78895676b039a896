"""Talk to a model: one protocol, one module an engine."""

"""Score language models that act as emotional companions."""

__version__ = "0.1.0"

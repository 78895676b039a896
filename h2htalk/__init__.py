"""Score language models that act as emotional companions."""

from h2htalk.version import __version__ as __version__

"""The version of the package; `h2htalk.__version__` is the same."""

__version__ = "0.1.0"

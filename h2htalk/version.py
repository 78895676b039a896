"""The version of the package; `h2htalk.__version__` is the same."""

__version__ = "0.1.0"


def installed_versions(*packages: str) -> dict[str, str]:
    """Return the versions of h2htalk, Python, and those of the packages that are installed."""
    # Imported here: every command imports this module, and these take longer than the rest of it.
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions = {"h2htalk": __version__, "Python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions

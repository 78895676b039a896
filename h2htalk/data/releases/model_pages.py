"""Models' repositories on the Hub."""

from __future__ import annotations

from pathlib import Path

from h2htalk.data.releases.hub_client import TOKEN, TOKENS_PAGE, hub_api, hub_errors, read_token
from h2htalk.errors import ConfigError


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file for a model's repository, whatever has the name there now. Each call opens another pull request.

    Args:
        model: `OWNER/NAME`.
        name: of the file in the repository.
        file: its content.
        message: of the commit, and title of the pull request.

    Returns:
        The address of the pull request.

    Raises:
        ConfigError: no token.
        HubError: the Hub cannot be reached, or refuses.
    """
    from huggingface_hub import CommitOperationAdd

    if read_token() is None:
        raise ConfigError(f"{TOKEN} is not set: make a token at {TOKENS_PAGE}, then export {TOKEN}=...")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)

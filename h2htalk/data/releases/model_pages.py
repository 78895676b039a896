"""Models' repositories on the Hub."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import CommitOperationAdd

from h2htalk.data.releases.hub_client import hub_api, hub_errors, require_token


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file under a name for a model's repository; each call opens another pull request.

    Returns:
        The address of the pull request.

    Raises:
        ConfigError: no token.
        HubError: the Hub cannot be reached, or refuses.
    """
    require_token("")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)

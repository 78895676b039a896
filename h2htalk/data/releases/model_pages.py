"""Models' repositories on the Hub."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import CommitOperationAdd

from h2htalk.data.releases.hub_client import hub_api, hub_errors, require_token


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file under a name for a model's repository; return the address of the pull request.

    Each call opens another one. Raises ConfigError without a token, HubError.
    """
    require_token("")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)

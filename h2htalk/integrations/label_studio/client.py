"""Connection to a Label Studio server: its paged listings, and the projects of a round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from h2htalk.data.bounded.bounds import LISTING
from h2htalk.errors import RoundError
from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.argilla.client import ServerClient

# Entries in a listing.
PAGE = 500


class LabelStudioClient(ServerClient):
    """A connection to a Label Studio server."""

    NAME = "Label Studio"
    URL = "LABEL_STUDIO_URL"
    KEY = "LABEL_STUDIO_API_KEY"
    VERSION = "1.23"
    VERSION_PATH = "/api/version"
    KEYS = (
        "copy a personal access token, or a legacy token if it is enabled, from Account & Settings"
    )

    def pages(self, path: str, key: str, **params: object) -> list[dict[str, Any]]:
        """Return a paged listing, newest first; pages may overlap while entries are added, and a 404 ends them."""
        listed: dict[int, dict[str, Any]] = {}
        for number in count(1):
            query = {**params, "page_size": PAGE, "page": number}
            _, body = self.call("GET", path, params=query, allowed=(404,))
            entries = body.get(key) if isinstance(body, dict) else None
            if not entries:
                return [listed[id] for id in sorted(listed, reverse=True)]
            if not isinstance(entries, list) or not all(
                isinstance(entry, dict) for entry in entries
            ):
                raise RoundError(
                    f"{self.url}: {path}: page {number} holds no list of objects; check the server's version"
                )
            listed |= {entry["id"]: entry for entry in entries}
            if len(listed) > LISTING.value or number > 1 + LISTING.value // PAGE:
                raise RoundError(f"{self.url}: {path}: {LISTING.message('a listing')}")
        raise AssertionError("pages are counted without end")

    def projects(
        self, content: datasets.RoundContent
    ) -> Iterator[tuple[datasets.RoundDataset, str, Any, list[Any]]]:
        """Yield each project of a round: its description, the project on the server or None, and (item, task) pairs."""
        projects = {
            project["description"]: project for project in self.pages("/api/projects", "results")
        }
        items = datasets.record_ids(content.items, content.salt)
        for planned in datasets.round_datasets(content):
            description = project_description(content, planned.name)
            project = projects.get(description)
            pairs = []
            if project:
                for task in self.pages("/api/tasks", "tasks", project=project["id"], fields="all"):
                    record = str(task["data"].get("id"))
                    if record in items:
                        pairs.append((items[record], task))
            yield planned, description, project, pairs


def project_description(content: datasets.RoundContent, name: str) -> str:
    """Return the description by which a round knows its project."""
    return f"h2htalk {content.marker}, {name}"


def is_of_round(project: Mapping[str, Any], content: datasets.RoundContent) -> bool:
    """Return whether a round made a project, also one all of whose items were erased."""
    return str(project["description"]).startswith(project_description(content, ""))

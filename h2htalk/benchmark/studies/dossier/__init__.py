"""One document for a compliance file: `dossier`; its provisions are in `articles.toml`."""

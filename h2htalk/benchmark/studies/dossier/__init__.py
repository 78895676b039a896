"""One document for a compliance file.

In: scored studies and evaluations. Out: `dossier.html`, and `dossier.pdf` where Chromium is present. Read `dossier`;
which provision a table is evidence for stands in `articles.toml`.
"""

"""What the Argilla backend (`argilla_rounds`) says to a server: people, datasets, records, the page, answers."""

"""Find personal data in dialogues and replace it with surrogates; read `find_spans`, then `stage`."""

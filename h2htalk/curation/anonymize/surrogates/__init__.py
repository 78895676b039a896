"""Draw surrogates from the dialogue and the secret key alone; read `dialogue_surrogates` first."""

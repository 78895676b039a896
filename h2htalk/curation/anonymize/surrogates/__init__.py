"""Choose the surrogates of a dialogue's personal data: read `dialogue_surrogates` first."""

"""Raw dialogues in, reviewed candidates out: the stages of `h2htalk curate`."""

"""Recognise e-mail addresses, URLs, numbers, identities and licence plates; read `structured` first."""

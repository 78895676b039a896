"""Recognise names, organisations and addresses in English text: read `recognizer` first."""

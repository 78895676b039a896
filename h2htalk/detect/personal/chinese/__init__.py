"""Recognise names, organisations and addresses in Chinese text: read `recognizer` first."""

"""Personal data in chat text, English and Chinese."""

"""Read answers and references of other programs: files of responses, the authors' release."""

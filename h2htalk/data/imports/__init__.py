"""Read files of other programs: responses and the authors' release (`response_files`), logs of other harnesses."""

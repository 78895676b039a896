"""What a reply says about itself: how it ended (`finish_reasons`), and which part of it is reasoning (`reasoning`)."""

"""Label Studio as a platform of rounds. The pages that annotators read are the templates in this folder."""

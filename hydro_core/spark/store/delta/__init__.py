"""The Delta tables of a pipeline, their files, and how rows come into them and out of them."""

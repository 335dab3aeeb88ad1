"""Where the batches of a pipeline's ticks come from: landings, stored tables, callers."""

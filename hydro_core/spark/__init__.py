"""Programs on Spark: items as columns, functions as expressions, plans as jobs, state as Delta tables."""

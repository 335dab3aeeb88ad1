"""The worker service: a few processes that stay and run ticks, so that none waits for Spark."""

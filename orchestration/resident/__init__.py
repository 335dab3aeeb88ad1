"""One process that stays and executes runs, so that a tick does not wait for Python and Spark."""

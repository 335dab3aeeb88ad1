"""The Dagster side: flows as partitioned assets."""

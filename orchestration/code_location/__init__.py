"""The flows of a project as Dagster loads them: assets, checks, a job and a sensor for each."""

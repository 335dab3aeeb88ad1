"""A project: its settings and flows, their programs and deployments, ticks and shapes."""

"""Programs that run in shards: which part each has, and how the results become one."""

"""A plan over a range of ticks: the shell, jobs, the pass over the plan, cycles, memory."""

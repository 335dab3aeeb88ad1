"""The machine that programs run on: processes, faults, paths, and what its environment says."""

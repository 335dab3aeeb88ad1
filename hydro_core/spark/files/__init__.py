"""Inputs from files and outputs to files, without a row in the driver."""

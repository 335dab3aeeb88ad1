"""The reference interpreter: what every operator means, by the formulas of the language page."""

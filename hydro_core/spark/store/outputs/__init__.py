"""What others see of outputs: tables of their own, rows as they stand, and how they differ."""

"""Programs as a user writes them: text, and Python."""

"""Programs, plans and rows as text, for the command line and for notebooks."""

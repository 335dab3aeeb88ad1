"""What a project declares: its flows, found in its asset folders, read and judged."""

"""What an item is as columns: its fields and keys, and what functions of the program make of it."""

"""What functions of programs may call: an entry for each method, property and builtin."""

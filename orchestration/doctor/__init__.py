"""What `hydrotick doctor` looks at before the first tick runs."""

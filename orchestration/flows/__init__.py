"""What is known of flows without running anything: what is deployed, committed and landed."""

"""What has come, gone and changed in a landing since it was read last."""

"""The files of a new project; `FLOW` in them is the name of its flow."""

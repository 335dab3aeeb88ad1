"""Rules under schedules: when what is asynchronous arrives, and what must never hold."""

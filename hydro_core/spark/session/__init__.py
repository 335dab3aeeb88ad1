"""Spark itself: a Java, the jars of Delta, the JVM, the session, and how failures are told."""

"""The language, its reference meaning, its optimizer and its Spark engine."""

"""Functions of a program on Spark: as guarded columns, else as Arrow UDFs."""

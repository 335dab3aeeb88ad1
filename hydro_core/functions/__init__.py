"""Functions of programs, on one way: text or Python -> tree -> bound tree -> folds.

1. `read` reads a function's syntax into a tree; `reading` is its reader, `allowed` lists the names
   that a text program may use.
2. `tree` has the seven nodes, `Fold` and `Fn`, `kinds` the types of values. The entry of an
   operation in `library` defines it.
3. `bind` binds parameters to arguments, and gives every node its type. `constant` computes constant
   parts, within the limits of `library.entry`.
4. A question about functions is a `Fold`, with an answer for every node: types (`bind`), totality
   (`totality`), lineage (`lineage`), normal forms (`forms`), Python's syntax (`from_tree`), and
   Spark's columns, in `hydro_core.spark.functions`. `known_folds` and `views` match known shapes.
5. `call` compiles a function, calls it on items, and explains why a call fails.
"""

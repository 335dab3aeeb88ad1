"""Functions of programs, on one way: text or Python -> tree -> bound tree -> folds.

1. `read` makes a tree of a function's syntax; `reading` has its parts, `allowed` what may be named.
2. `tree` has the seven nodes, `kinds` the types of values, `fields` which field a part is. What an
   operation is stands in its entry of `library`.
3. `bind` says what parameters stand for, and gives every node its type. `constant` computes what
   depends on nothing, within the limits of `library.entry`.
4. `fold` is how questions are asked of a tree, each with an answer for every node: types (`bind`,
   `result_type`), whether there is a value (`totality`), where fields come from (`lineage`), which
   functions are the same (`forms`), Python's syntax (`from_tree`), which is what runs; and Spark's
   columns, in `hydro_core.spark.functions`. `known_folds` and `views` look for trees of a shape.
5. `fn` is a function as the rest of the system holds it: `call` compiles it, `evaluate` calls it on
   items, `attempt` asks whether it fails, `failed_call` says why, `python_text` shows it.
"""

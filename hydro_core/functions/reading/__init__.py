"""The reader of functions: syntax becomes trees; allowed forms, meanings of names, expressions,
statements.
"""

"""The reference interpreter: the meaning of every operator, by the formulas of the language
page.
"""

"""Programs judged by running them: a plan beside its program, two programs, a part of one, and one
in ways that must not matter.
"""

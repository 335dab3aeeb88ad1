"""The library of functions: an entry for each method, property and builtin that programs may
call.
"""

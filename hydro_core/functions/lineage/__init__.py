"""Where the fields of a function's result come from: copies of fields, and expressions of them."""

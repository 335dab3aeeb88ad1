"""What is printed of programs and of what they give: at the command line, and in notebooks."""

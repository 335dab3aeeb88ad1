"""What several operators are made of: products, covers, matches and changes of relations."""

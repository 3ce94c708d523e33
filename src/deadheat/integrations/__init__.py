"""Other libraries' objects and extension points: one module per library, none knows another."""

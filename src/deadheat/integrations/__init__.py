"""Other libraries' objects and extension points: one module per library.

None knows another, but where one library runs the models of another: MTEB those of
sentence-transformers.
"""

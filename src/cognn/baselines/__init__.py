"""The models that a user compares Co-GNN with."""

"""Layer-wise inference: every layer is computed for all nodes before the next one, block by block, and exactly.

May import what the rest of ``nn`` may, but not ``nn.model``, which offers it as ``CoGNN.inference``.  Start with
``stages.py``.  Graphs on disk are in :mod:`cognn.inference`.
"""

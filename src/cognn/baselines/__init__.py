"""Baseline models for comparison with Co-GNN.

May import ``nn`` and the rooms before it.  Start with ``models.py``: ``BASELINES`` lists the names and
``make_baseline`` builds a model.  ``residual_blocks.py`` defines the block that each baseline stacks, ``layers.py`` the
graph layers that only baselines use.
"""

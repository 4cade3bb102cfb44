"""The model: actions, layers, the training-time execution modes and the trace.

May import ``core`` and the rooms before it.  Start with ``model.py``.  ``actions.py``: the ``ActionSpace`` owns action
codes, probabilities and gates.  ``hearing.py``: layers receive a ``Hearing`` and never take gates apart.  ``layers/``
has one layer per file.  ``layer_step.py`` runs one layer, ``compiling.py`` and ``checkpointing.py`` wrap it.
"""

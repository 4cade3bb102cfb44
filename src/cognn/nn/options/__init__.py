"""The options of a model: names as PyG spells them, errors of the constructor, and the files of a saved model.

May import ``files`` and the parts of ``nn`` below ``nn.model``.  Start with ``resolve.py``.
"""

"""Finished runs as programs that run without cognn: ``torch.export``, ONNX and AOTInductor.

May import ``run`` and what comes before it.  Start with :func:`~cognn.export.write.export_run`, which ``cognn export``
calls.  ``program.py`` is what is exported, ``interface.py`` describes it to the caller, ``formats.py`` writes it.
"""

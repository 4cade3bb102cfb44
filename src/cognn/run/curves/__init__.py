"""Training curves for other programs: TensorBoard, Weights & Biases and MLflow.

``metrics.jsonl`` is the record.  Start with ``split.py``: what another program has is written again from the record
whenever training resumes, so a run that was killed, or trained for a while without, has every point once.
"""

"""What a report shows: decisions, groups, explanations and features of one run, as arrays and dataclasses.

Knows nothing of HTML or figures, and imports nothing from the rest of ``cognn.report``.  Start with
:class:`~cognn.report.data.run_view.RunView`; ``explain`` computes which decisions a prediction depends on, and
``selection`` decides what a page has room for.
"""

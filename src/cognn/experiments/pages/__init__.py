"""Records as Markdown: the page next to each record, and the tables in README and docs.

May import all other parts of ``experiments``.  Start with :func:`~cognn.experiments.pages.markdown.record_page`;
``readme`` fills the marked tables of a page, and ``action_gain`` is the table that answers whether the actions help.
"""

"""How a report is shown: one self-contained HTML file, its charts, and the data of its graph explorer.

May import ``report.data`` and the palette.  Start with :func:`~cognn.report.page.render.write_page`.  The
template, style and scripts are in ``assets``; ``main.js`` connects the controls.
"""

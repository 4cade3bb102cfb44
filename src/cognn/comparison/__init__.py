"""Does cooperation help on my graph?  ``cognn compare`` trains models of three levels and tests their differences.

The levels are: features alone, the edges too, actions on the edges.  Every model has the same splits, number of trials
and time.  May import everything up to ``report``.  Start with :func:`cognn.comparison.compare.compare`; ``rows`` lists
the models, ``work`` trains one of them, ``verdict`` tests and says what follows.
"""

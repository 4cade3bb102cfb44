"""Link tasks: the items are pairs of nodes.

Start with ``items``, which makes a link task of any graph; ``messages`` takes validation and test links out of the
graph, ``epoch`` draws the pairs without a link that an epoch trains on, and ``given`` reads the pairs to predict.
"""

"""The layers, cheapest first: each runs so that the next, more expensive one need not.

Rooms under here never import each other: they meet in `lamina.turn`. Each room's docstring is its card.
"""

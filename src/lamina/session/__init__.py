"""Session and AsyncSession: Lamina under a loop of your own.

session.py   before_call · after_call · end_turn · compact, sync and async     base.py     opening, input and closing
inspect.py   what can be seen of a session                                     edits.py    pins, hidden messages, undo
sync.py      follows a message list that the caller owns                       open.py     new, continued or forked transcripts
provider.py  the provider that answers and the thresholds of its window        expand.py   what an id stands for, opened again
"""

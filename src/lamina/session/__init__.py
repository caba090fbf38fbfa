"""Session and AsyncSession: Lamina's memory for your own agent loop.

session.py   before_call · after_call · end_turn · compact, sync and async     base.py     opening, input and closing
inspect.py   read-only properties: messages, tokens, cost, status              edits.py    pins, hidden messages, undo
sync.py      keeps a session in step with your own message list                open.py     new, resumed or forked transcripts
provider.py  opens the provider and computes its thresholds                    expand.py   shows the originals behind an id
"""

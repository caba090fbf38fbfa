"""Session and AsyncSession: Lamina's memory for your own agent loop, all seven layers.

session.py   before_call · after_call · end_turn · compact, sync and async     base.py     opening, input and closing
start.py     memory section, first reminder, own tools, files read (U2)        side_calls.py  the provider of side calls
memory_binding.py  where memory is, its prompt section, its writes             reminders.py   instruction files, date, nested rules
own_tools.py Expand, MemorySearch, MemorySave, PastSearch for a host's model            expand.py   shows the originals behind an id
inspect.py   read-only properties: messages, tokens, cost, status              edits.py    pins, hidden messages, undo
sync.py      keeps a session in step with your own message list                open.py     new, resumed or forked transcripts
provider.py  opens the provider and computes its thresholds                    turn_undo.py   undo of a turn and its memories
"""

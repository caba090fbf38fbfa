"""Session and AsyncSession: Lamina's memory for your own agent loop, all seven layers.

`Session` is one class in three files: `base.py` (arguments, state, flows, closing) ← `methods.py` (what never waits for a model: input,
edits, properties) ← `session.py` (what may wait, sync and async).

context.py   memory section, first reminder, own tools, files read (U2)        reminders.py   instruction files, date, nested rules
memory_binding.py  where memory is, its prompt section, its writes             own_tools.py   Expand, MemorySearch, MemorySave, PastSearch
edits.py     pins, hidden messages, undo of changes and turns                  expand.py      shows the originals behind an id
sync.py      keeps a session in step with your own message list                open.py        new, resumed or forked transcripts
provider.py  opens the provider and computes its thresholds
"""

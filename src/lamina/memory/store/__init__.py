"""Memories on disk: topics, their index, the journal of every change, scopes and modes.

contract.py   the store protocol and its values     directory.py    the store in a directory    in_memory.py  the store in a dict
topic.py      one memory as a file                  topic_files.py  finding, reading, scanning  uses.py       recalls and reads
index.py      the text of MEMORY.md                 index_file.py   its file and its limit
draft.py      validation of new memories            secrets.py      redaction                   evidence.py   files it relies on
journal.py, history.py  every change                journal_check.py  damage
scopes.py, project_identity.py  memory locations    modes.py        off, read-only, confirm     daily_logs.py assistant mode
lint.py       faults in memories and the index      change_sets.py  what belongs together, undone and redone; recovery
search_index.py  words and names of a large directory
"""

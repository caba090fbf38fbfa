"""Memories on disk: topics, their index, the journal of every change, scopes and modes.

contract.py   what a store is, and its values       directory.py    the store in a directory    in_memory.py  the store in a dict
topic.py      one memory as a file                  topic_files.py  found, read and scanned     index.py      MEMORY.md
draft.py      what may be written                   secrets.py      redaction                   evidence.py   what a memory rests on
journal.py, history.py, git.py  every change        recovery.py     finished and put back       journal_check.py  what cannot be read
scopes.py, project_identity.py  where memory lies   modes.py        off, read-only, confirm     daily_logs.py assistant mode
lint.py       faults of memories and of the index
"""

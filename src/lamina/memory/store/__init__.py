"""Memories on disk: topics, their index, the journal of every change, scopes and modes.

contract.py   what a store is, and its values       directory.py  the store in a directory      in_memory.py  the store in a dict
topic.py, yaml_text.py  one memory as a file        draft.py      what may be written           scan.py, lookup.py  reading topics
index.py, index_file.py, index_lint.py  MEMORY.md   evidence.py   what a memory rests on        secrets.py    redaction
journal.py, history.py, blame.py, git.py, journal_check.py  every change                        restore.py, recovery.py
scopes.py, project_identity.py  where memory lies   modes.py, inbox.py  off, read-only, confirm daily_logs.py assistant mode
lint.py, similarity.py  descriptions that help nobody, near-duplicates
"""

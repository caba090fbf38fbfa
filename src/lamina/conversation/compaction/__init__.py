"""Steps that every compaction shares, whether notes or a summary replace the messages.

Pure: cuts.py (where a view may be cut), user_messages.py, compose.py (the text of a summary, the files used). In a
conversation: hooks.py (PreCompact), restoration.py (context shown again), probes.py (which facts the model can still answer),
commit.py (writes everything at once).
"""

"""What every compaction shares, whether notes or a summary take the place of messages.

Pure: cuts.py (where a view may be cut), user_messages.py, files.py, compose.py (the text of a summary), restore.py, probes.py.
In a conversation: hooks.py (PreCompact), restoration.py (what is put back), fidelity.py, commit.py (one write for all of it).
"""

"""What every compaction shares, whether notes or a summary take the place of messages.

Pure: cuts.py (where a view may be cut), user_messages.py, compose.py (the text of a summary, the files used), restore.py.
In a conversation: hooks.py (PreCompact), restoration.py (what is put back), probes.py (what can still be answered), commit.py (one
write for all of it).
"""

"""`lamina forget`: one subject out of memories, transcripts and every other file that is kept."""

"""`lamina forget`: remove a subject from memories, transcripts and every other stored file."""

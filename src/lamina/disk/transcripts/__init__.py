"""Transcripts: the JSONL files of conversations, how they are written, read, resumed, found, listed and repaired."""

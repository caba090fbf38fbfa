"""Locks: the system's file lock, short guards and lifelong locks built on it, and the lock of a dream with its owner."""

"""Locks: which system call locks a file, guards and lifelong locks made of it, and the lock of a dream with its owner."""

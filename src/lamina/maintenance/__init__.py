"""Maintenance of stored data: check it, forget a subject, move a project, import, export, expire.

    doctor/    find problems with memory, settings, instruction files and sessions, and fix what is safe to fix
    forget/    remove a subject from everything that is stored
    migrate/   move the memory and sessions of a project to its new directory
    transfer/  import and export
    retention.py, start_checks.py  expiry of old sessions, and the checks at the start of a session

Spec  B4, B5, B11-B13, Z4, Z5, Z9, Z11, Z12
"""

"""What people do with what is kept: check it, forget a subject, move a project, import, export, expire.

    doctor/    what is wrong with memory, settings, instruction files and sessions, and what of it can be fixed safely
    forget/    one subject out of everything that is kept
    migrate/   a project that moved keeps its memory and its sessions
    transfer/  import and export
    retention.py, start_checks.py  old sessions, and what is looked after when a session starts

Spec  B4, B5, B11-B13, Z4, Z5, Z9, Z11, Z12
"""

"""The chat on a terminal.

decides  how things look, and what a line that begins with a slash means
does     asks for lines and permission, shows answers, calls and the status, ends a turn when the person wants it
costs    the import of a line editor; an SDK is imported in a thread while the person types
switch   -p, and any stream that is no terminal
spec     T7, T8, F2, B2
"""

"""The interactive chat.

decides  how output looks, and what a line starting with a slash means
does     reads lines, asks for permission, shows answers, tool calls and the status, stops a turn on request
costs    the import of a line editor; an SDK is imported in a thread while the user types
switch   -p, and any stream that is not a terminal
spec     T7, T8, F2, B2
"""

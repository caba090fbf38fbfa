"""Tools: what a model may do besides talking.

decides  whether arguments fit, whether a file may be overwritten (X8), what of a large result is shown
does     Read, Write, Edit, Grep, Glob, Bash, TodoWrite, Expand; every write goes through `disk.user_files`
costs    a Read or an Edit one pass over the file; Grep a process (7 ms with ripgrep); nothing at import
switch   an agent is given the tools it may use; which calls are allowed is the permission function's decision
spec     X8, and what R1, R5 and C4 stand on: bounded results, a file with Bash's whole output, the files read last

Whatever a model sends, a call ends with one result of bounded size: no exception, no endless wait, no file half written.
Nothing is imported here: the worker that searches without ripgrep loads this package too.
"""

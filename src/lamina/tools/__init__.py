"""Tools: the actions a model can take besides writing text.

decides  whether arguments are valid, whether a file may be overwritten (X8), which part of a large result is shown
does     Read, Write, Edit, Grep, Glob, Bash, TodoWrite, Expand; every write goes through `disk.user_files`
costs    one pass over the file for Read and Edit; one process for Grep (7 ms with ripgrep); nothing at import
switch   an agent gets only the tools it may use; the permission function decides which calls are allowed
spec     X8, and the basis for R1, R5 and C4: bounded results, a file with Bash's whole output, the files read last

Whatever a model sends, a call ends with one result of bounded size: no exception, no endless wait, no half-written file.
This module imports nothing, because the process that searches without ripgrep loads the package too.
"""

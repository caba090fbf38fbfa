"""Read-only commands (G2): what may run without a shell and without asking, and the run itself.

decides  `plan_readonly`: whether a command line only reads, inside the given directories; a plan or a refusal with its reason
does     `run_readonly`: starts the planned programs by exec, no shell, bounded in time, memory and output
costs    a plan a few tenths of a millisecond, with a look at each path; a run one process for each command
invariant  what is not understood is refused: the tokenizer, the commands, each option and each path are allow-lists
spec     G2, X6

`tokenizer` cuts the text, `commands` holds the lists, `arguments` reads the words by them, `paths` looks at
the disk. Not on Windows: there are no such programs there, and everything is refused.
"""

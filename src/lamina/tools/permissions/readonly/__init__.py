"""Read-only commands (G2): commands that may run without a shell and without asking, and how they run.

decides  `plan_readonly`: whether a command line only reads, inside the given directories; returns a plan or a refusal with its reason
does     `run_readonly`: starts the planned programs by exec, without a shell, bounded in time, memory and output
costs    a few tenths of a millisecond and one lookup per path for a plan; one process per command for a run
invariant  anything not understood is refused: the tokenizer, the commands, each option and each path are allow-lists
spec     G2, X6

`tokenizer` splits the text, `commands.toml` holds the lists, `plan` reads the words by them, `paths` checks the disk. On
Windows these programs don't exist, and everything is refused.
"""

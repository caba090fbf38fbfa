"""Files of one session beside its transcript: tool results, output of programs, and the state of its agents."""

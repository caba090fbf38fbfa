"""Files of one session next to its transcript: tool results, output of programs, and the state of its agents."""

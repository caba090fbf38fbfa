"""What is wrong with memory, instruction files, settings and sessions, and what of it can be mended safely.

decides  what is worth a person's attention, how grave it is, and whether mending it is safe
does     `examine` reads and changes nothing; `mend` does what the findings offer, through the memory store and `disk`
costs    a few seconds for ten thousand memories, and what it takes to read 256 MB of transcripts; no model call
off      nothing runs unless a person asks for it
spec     Z12, S3–S5, I2, I3, B8, Z9–Z11
"""

"""Find problems with memory, instruction files, settings and sessions, and fix what is safe to fix.

decides  what is worth the user's attention, how severe it is, and whether fixing it is safe
does     `examine` only reads; `mend` applies the fixes that findings offer, through the memory store and `disk`
costs    a few seconds for ten thousand memories, plus reading up to 256 MB of transcripts; no model call
off      runs only on request
spec     Z12, S3–S5, I2, I3, B8, Z9–Z11
"""

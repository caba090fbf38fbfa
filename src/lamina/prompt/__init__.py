"""What is sent: the system text, instruction files, reminders, and where the provider's cache marks stand.

decides  which instruction files and includes count (I1–I3), what the first reminder says (I4), where the marks stand (K1),
         whether a cache was missed and why (K2)
does     reads instruction files; runs git without the repository's own configuration
costs    a few milliseconds at the start of a session; two copied blocks a call
spec     I1–I4, G3, K1, K2
"""

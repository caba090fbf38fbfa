"""The prompt: the system text, instruction files, reminders, and the positions of the provider's cache marks.

decides  which instruction files and includes count (I1–I3), the content of the first reminder (I4), where the marks go (K1),
         whether the cache was missed and why (K2)
does     reads instruction files; runs git without the repository's configuration
costs    a few milliseconds at the start of a session; two copied blocks per call
spec     I1–I4, G3, K1, K2
"""

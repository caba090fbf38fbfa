"""Replay recorded sessions to compare tokens, cache hits and cost between policies and with layers turned off (B14, P8).

decides  nothing: every decision is made by `lamina.Session` under the given settings and policy
does     plays a recording into a session in a temporary directory, and bills each request with a model of the provider's cache
         at the time and by the model of the recording; text that an answer needs and that has left is fetched again and paid
costs    no model calls; about a second per thousand calls and policy, and the memory of one session at a time
off      runs only on request
spec     B14, P8

The answers are the recorded ones under every policy. A model that sees less context might answer differently, which cannot be
known without asking one. Summaries and notes come from local functions, so their length is that of the local functions' output.
"""

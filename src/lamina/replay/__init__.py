"""Recorded sessions run through the layers again: tokens, cache and money, against other policies and with layers off (B14).

decides  nothing of its own: every decision is `lamina.Session`'s, under the settings and the policy that are asked for
does     plays what was recorded into a session in a directory that is thrown away, and bills each request by the model of the cache
costs    no call to a model; about a second for every thousand calls and policy, and the memory of one session at a time
off      nothing runs unless a person asks for it
spec     B14

What was answered is what was recorded, whatever the policy: a model that sees less might have said something else, and that cannot be
known without asking one. Summaries and notes are made by the local functions, so they are as long as those make them.
"""

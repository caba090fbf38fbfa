"""Side runs that share the prompt cache, the one tool loop, and who may do what.

decides  which calls run, ask or are denied (`permissions`), for the main conversation and for every fork by one function
does     the tool loop (`loop`): ask (`asking`: a call can be left at any moment), run the tools an answer calls for (`desk`), ask again;
         forks (`fork`): one directive behind what the parent handed over (`handover`), at a desk lent for it (`lent`), and work in the
         background (`background`)
costs    a decision about a millisecond at most; a fork one request that begins with the parent's bytes
switch   `permissions` in the settings; the mode of a session
spec     A1–A3, X6, D4, G2, F2 (rules of a working tree count once it is trusted)

`rules` reads the settings, `patterns` and `shell_rules` match paths and command lines, `meeting` finds the rule a call meets,
`sensitive` knows the names that deserve a question, `suggest` the rule to offer with "always".
"""

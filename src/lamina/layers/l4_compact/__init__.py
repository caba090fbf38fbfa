"""Layer 4: full compaction. A summary takes the place of what was said, and what matters is put back.

Decides  what is kept and what is summarised, whether an answer is a summary, what is put back, when to stop trying
Does     nothing itself: `layers/l4_compact/step.py` asks the model, reads the files and enters the records
Costs    one call that reads the conversation from the prompt cache (a tenth of its price) and writes a few thousand tokens
Switch   `compaction` (all), `auto_compact` (by itself); `compact.ahead` of the policy for summaries made ahead of need
Spec     C1-C9, B1-B3, K4, O1

    plan.py        which part is summarised, whole pairs only        read.py        is this answer a summary
    cuts.py        where a view may be cut                           compose.py     the summary as it enters the log
    prompt.py      what the summariser is asked                      users.py       the person's words, word for word
    ladder.py      the call is too long: drop the oldest rounds      files.py       the files used, from the tool calls
    mechanical.py  a summary without a model                         restore.py     what is put back, within budgets
    local.py       the same for the offline provider                 breaker.py     when to stop by itself
    expand.py      what a summary stands for, opened again           values.py      lines that state a value, found by rule
    probes.py      facts that are looked for afterwards (K4)
"""

"""Layer 4: full compaction. A summary replaces old messages, and important context is restored after it.

Decides  what to keep, summarise and restore, whether an answer is a valid summary, and when to stop trying
Does     asks the model, reads the files and commits the summary (step.py)
Costs    one call that reads the conversation from the prompt cache (a tenth of the price) and writes a few thousand tokens
Switch   `compaction` (all), `auto_compact` (automatic only); `compact.ahead` in the policy for prefetched summaries
Spec     C1-C9, B1-B3, K4, O1, P4

    step.py          automatic and manual compaction           plan.py          which messages are summarised, and when to stop
    summary_call.py  the model call, with retries, or ahead    summary_text.py  the directive, and validation of the answer
    offline.py       a summary without a model                 expand.py        shows the messages behind a summary
    collapse.py      folds old turns, snips messages
"""

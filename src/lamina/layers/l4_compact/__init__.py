"""Layer 4: full compaction. A summary takes the place of what was said, and what matters is put back.

Decides  what is kept and what is summarised, whether an answer is a summary, what is put back, when to stop trying
Does     asks the model, reads the files and commits the summary (step.py)
Costs    one call that reads the conversation from the prompt cache (a tenth of its price) and writes a few thousand tokens
Switch   `compaction` (all), `auto_compact` (by itself); `compact.ahead` of the policy for summaries made ahead of need
Spec     C1-C9, B1-B3, K4, O1

    step.py          when to compact, by itself or by hand     plan.py          which part is summarised, whole pairs only
    summary_call.py  asking the model, with retries            summary_text.py  the directive; is this answer a summary
    apply.py         the summary becomes a compaction          prefetch.py      a summary made ahead of need
    breaker.py       when to stop by itself                    offline.py       a summary without a model
    expand.py        what a summary stands for, opened again   collapse.py      old turns folded, messages hidden
"""

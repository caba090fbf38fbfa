"""What a person does with what is kept: forget a subject, let a moved project keep its memory, let old sessions go.

decides  what holds a subject (`subject`, `texts`), which files there are (`places`), which sessions are old (`retention`), which
         project moved here (`migrate`)
does     rewrites or removes exactly that, through `disk`, and reports it; nothing here runs by itself but `starting`, which removes
         old sessions only where a setting says so and otherwise only tells
costs    nothing in a turn; a start looks at one small file, once a day at the ages of the sessions if they may go
off      without `cleanupPeriodDays` nothing is ever removed
spec     B11, B12
"""

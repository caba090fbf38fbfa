"""Language: sentences as values, and the words of human languages that the rules need.

text.py      `Text`, a sentence with its template; `render` gives it in the language of a surface, from zh_CN.json
wording.py   number agreement                     detection.py   the language of a text
terms.py     the terms of a text, for ranking     connectives.py, announcements.py   words that join and announce
dates.py     dates as people write them, with calendar_days.py and romance_dates.py
patterns.py  grammar as data: expressions under headings, one alternative a line, in NAME.txt
memory_requests.py, excluded_kinds.py             what a text asks to remember, and what memory excludes
invisible.py characters that cannot be seen

Nothing here imports another package of Lamina.
"""

"""The page (`lamina ui`): what the agent remembers, what filled its window, what it cost, in a browser on this machine.

Decides  nothing: every change goes through the same guard, journal and permissions as on the command line
Does     serves HTML that is complete without scripts, one event stream, and JSON of every view with `?format=json`
Costs    no CPU while no page is open; the first view reads the index of all sources, a session's view reads its file
Switch   the command itself; `--read-only` refuses every change and keeps the index in memory
Spec     V1, V2, V3, V4, V5, V6

server.py    the application and its socket          safety.py   token, cookie, secret, Host, Origin, response headers
site.py      settings, homes and lists that the views share      live.py     the event stream
html.py      markup that escapes by default          page.py     head, navigation, search, JSON
words/       English and Chinese                     numbers.py  money, tokens, times
changes.py   the answer to a change: message, undo, conflict     *_view.py   one module per view
static/frame.js   the way from view to view, and everything that all views share in the browser
memory_places.py → memory_stores.py → memory_history.py → memory_index.py   the memories of all places, each built on the one before
"""

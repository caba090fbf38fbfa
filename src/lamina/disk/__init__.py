"""The only package that writes, in three ways, each safe against crashes, full disks, other processes and planted links.

decides  which paths may be used (`paths`, G1), whose lock it is (`locks`), which lines of a log are whole (`transcripts.jsonl`)
does     replace a file as a whole and update one that others update too (`files`), append lines to a log (`append`), and all of
         that inside one directory tree (`trees.rootdir`); `transcripts`, `home` and `session_files` stand on top of these
costs    a replace about two fsyncs, an append one system call, an update a lock and a replace
crash    at any line: old content or new, never a part; the points in `crash_points` let tests stop at each of them
spec     G1, S1 (slug), S6, B4 and D2 stand on it

`faults` maps errno to the error tree, `dirfd` opens directories, `temp_files` and `locks` hold what a crash may leave behind.
No other package opens a file for writing; tests/test_only_disk_writes.py holds that.
"""

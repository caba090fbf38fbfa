"""The only package that writes files. Its three ways to write are safe against crashes, full disks, other processes and planted
links.

decides  which paths may be used (`paths`, G1), who owns a lock (`locks`), which lines of a log are intact (`transcripts.jsonl`)
does     replaces a whole file and updates a shared one (`files`), appends lines to a log (`append`), and does all of this inside
         one directory tree (`trees.rootdir`); `transcripts`, `home` and `session_files` are built on these
costs    a replace takes about two fsyncs, an append one system call, an update a lock and a replace
crash    at any line: the old content or the new, never a part; tests can stop at every point in `crash_points`
spec     G1, S1 (slug), S6, B4 and D2 depend on it

`faults` maps errno to the error tree, `dirfd` opens directories, `regular_file` opens and looks at files that anyone may have
written, `temp_files` and `locks` own the files that a crash may leave behind. No other package opens a file for writing;
tests/test_only_disk_writes.py enforces this.
"""

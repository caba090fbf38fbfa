"""The only room that writes: three ways to do it, each safe against crashes, full disks, other processes and planted links.

decides  which paths may be used (`paths`, G1), whose lock it is (`lock`), which lines of a log are whole (`lines`)
does     replace a file as a whole (`files`), append lines to a log (`append`), update a file others update too (`files`);
         everything inside one directory tree through `rootdir`; transcripts on top of these
costs    a replace about two fsyncs, an append one system call, an update a lock and a replace
crash    at any line: old content or new, never a part; the crash points in `crash` let tests stop at each of them
spec     G1, S1 (slug), S6, B4 and D2 stand on it

`faults` maps errno to the error tree, `at` opens directories, `temps` and `oslock` hold what a crash may leave behind.
No other room opens a file for writing; tests/test_only_disk_writes.py holds that.
"""

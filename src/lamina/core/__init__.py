"""Pure values and rules. No code in this package touches a file, a clock or the network.

decides  the meaning of a message, a record, the log, the view and the prefix
does     no I/O: every function maps values to values
costs    O(new blocks) per turn
spec     C11, T1–T10 (values), B1 (receipts), F1–F4 (resolution), K1–K3 (cache model)
"""

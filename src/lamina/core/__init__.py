"""Pure values and rules; nothing here touches a file, a clock or a network.

decides  what a message, a record, the log, the view and the prefix are
does     nothing: every function maps values to values
costs    O(new blocks) per turn
spec     C11, T1–T10 (values), B1 (receipts), F1–F4 (resolution), K1–K3 (cache model)
"""

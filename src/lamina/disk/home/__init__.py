"""Files of the home directory that all sessions share: trust, approvals, the ledger, mailboxes, sockets and agent files."""

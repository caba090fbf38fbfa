"""Directory trees: access confined to one tree (`rootdir`), finding changes, listing entries, rewriting and removing."""

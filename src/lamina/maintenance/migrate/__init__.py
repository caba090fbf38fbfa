"""`lamina migrate`: move the memory and sessions of a project to its new directory."""

"""Execution by several workers: each goes through its operations and exchanges messages with the others. `mail` posts
and takes them (memory that threads share), `engine` carries out operations, `threads` starts a team. This package is
independent of the contents of messages."""

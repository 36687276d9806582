"""Who does it: a worker goes through its operations, and messages travel between workers. `mail` posts and takes them
(memory that threads share), `engine` carries out operations, `threads` starts a team. Nothing here knows what a message
means."""

"""Files of machine code, damaged in every way: name -> function from their contents to others."""

import hashlib
import json


def rewritten(content, change):
    """With another header, and the checksum that belongs to it."""
    magic, _, told, code = content.split(b"\n", 3)
    body = change(json.loads(told)) + b"\n" + code
    return b"\n".join([magic, hashlib.blake2b(body, digest_size=16).hexdigest().encode(), body])


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1:]


DAMAGE = {
    "truncated": lambda content: content[:len(content) // 2],
    "a bit flipped": flipped,
    "empty": lambda content: b"",
    "another format": lambda content: b"bunraku machine code 0\n" + content.split(b"\n", 1)[1],
    "garbage": lambda content: bytes(range(256)) * 20,
    "a header of garbage": lambda content: rewritten(content, lambda told: b"\xff{"),
    "a header without its key": lambda content: rewritten(content, lambda told: b"{}"),
    "a header of another kind": lambda content: rewritten(content, lambda told: b"[1]"),
    "other sources": lambda content: rewritten(content, lambda told: json.dumps({**told, "key": "0" * 20}).encode()),
    "unknown functions": lambda content: rewritten(
        content, lambda told: json.dumps({**told, "needs": [*told["needs"], "nobody_has_this"]}).encode()),
    "another function": lambda content: rewritten(content.replace(b"python.", b"pythan."),
                                                  lambda told: json.dumps(told).encode()),
}

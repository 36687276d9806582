"""Algorithms on flat arrays, one per file, generic in the scalar. Independent of names, files and workers."""

from numba.extending import register_jitable

from bunraku.plan import fields

for place in (fields.connection_record, fields.row_start):
    register_jitable(place)

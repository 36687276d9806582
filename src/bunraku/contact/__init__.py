"""Contact geometry on flat arrays: shapes on bodies, the pairs that may touch, points, normals and gaps.

Nothing here knows names, files or forces.
"""

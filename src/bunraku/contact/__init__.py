"""Contact geometry on flat arrays: shapes on bodies, the pairs that may touch, points, normals and gaps.

Independent of names, files and forces.
"""

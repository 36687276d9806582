"""Six-dimensional algebra on tuples of scalars, where a scalar is one float or a SIMD lane of them."""

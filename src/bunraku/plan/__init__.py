"""The bridge between the public interface and the kernels: a mechanism as flat arrays."""

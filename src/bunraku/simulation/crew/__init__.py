"""Workers of a simulation: threads of this process, or ranks of MPI."""

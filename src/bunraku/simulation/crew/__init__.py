"""The workers of one simulation: threads of this process, or ranks of MPI.

decides   sharing.py         `Sharing`: whether the simulation is divided, into which chunks, for how many workers
divides   divided_memory.py  `DividedMemory`: the solver's memory with the workers, by columns; stretches; gathering
runs      crews.py           `Threads` and `Processes`: all workers of a division, each with its share
computes  worker_share.py    `Share`: plan, memory and record of one worker, the same in a thread and in a process
serves    rank_server.py     the loop of a rank other than 0; mpi_ranks.py: MPI, its messages and its end
"""

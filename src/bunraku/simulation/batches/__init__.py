"""Many simulations: rollouts of one mechanism, ensembles of any cases.

asks      rollout.py         `rollout`: arguments and results; rollout_case.py: the same as the function of an ensemble
computes  group.py           `Group`: states of a batch, integrated in lanes or one by one, over threads
spreads   ensemble.py        `ensemble`: cases over the processes of an executor
stores    results_file.py    results of an ensemble in a file that survives a crash
"""

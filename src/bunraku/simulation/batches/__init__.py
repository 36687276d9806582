"""Many simulations: rollouts of one mechanism, ensembles of any cases.

asks      rollout.py         `rollout`: arguments and results; rollout_case.py: the same as the function of an ensemble
          worlds.py          `Worlds`: copies that stay in memory between steps; given_torques.py: torques of a step;
                             observing.py: observations by compiled functions; streams.py: random numbers
computes  group.py           `Group`: states of a batch, integrated one by one, over threads
          tiles.py           the same in lanes; singles.py: one by one, some steps at a time
spreads   ensemble.py        `ensemble`: cases over the processes of an executor
stores    results_file.py    results of an ensemble in a file that survives a crash
"""

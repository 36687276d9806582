"""Many simulations: rollouts of one mechanism, ensembles of any cases."""

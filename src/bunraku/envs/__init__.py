"""Tasks for learning: figures with motors, environments of Gymnasium, planning by sampling."""

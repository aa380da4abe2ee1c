"""Plan files into trainings, fabrics, prices and problems; only reading, no physics."""

"""What has been revealed, as a lattice: estimate and variance of any query."""

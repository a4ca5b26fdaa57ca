"""Methods of release: mixture, AIM, direct and the residual planner."""

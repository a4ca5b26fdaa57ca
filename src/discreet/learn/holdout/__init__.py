"""A holdout set that may be asked again and again, and a leaderboard."""

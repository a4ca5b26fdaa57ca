"""The commands that the lab gives to `discreet`: attack, audit and reproduce."""

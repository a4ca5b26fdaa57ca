"""`python -m discreet` is the `discreet` command."""

from discreet.cli import main

if __name__ == "__main__":
    main()

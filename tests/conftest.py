"""Laws are checked for truth, not for speed: a busy machine must not fail them.

`make test` tries the same examples every time, so that what it says of a change is about the change; `make test-long`
searches for new ones.
"""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("steady")

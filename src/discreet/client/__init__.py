"""A curator on a server: the same methods and answers as a local curator, over HTTP."""

from discreet.client.remote_curator import RemoteCurator, connect

__all__ = ["RemoteCurator", "connect"]

"""The curator's words as JSON: one protocol for the server, its client and whoever writes another."""

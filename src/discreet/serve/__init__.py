"""The same curator over HTTP: an API for programs and a page for people. What it promises: docs/server.md."""

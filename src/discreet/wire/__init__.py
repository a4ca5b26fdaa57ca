"""The JSON of the HTTP API: questions, answers, workloads and problems, for the server and its clients."""

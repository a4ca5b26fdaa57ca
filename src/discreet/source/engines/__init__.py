"""Rows that stay in an engine: DuckDB, Postgres, Spark, through Ibis."""

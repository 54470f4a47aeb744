"""Decisions of the write path and of configuration, free of HTTP and SQL."""

"""Serves the functions of a Python file over HTTP on a Unix socket."""

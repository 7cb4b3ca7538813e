"""A module beside the entry, which the entry can import by its name."""

NAME = "next door"

"""Stands in for the package of this name, which the tests do not need."""

"""For the e2e and fault tests: compile a program, run it, read its trace without our own code."""

"""A report as people see it: the page, figures, the terminal summary, notebooks."""

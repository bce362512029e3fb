"""The figures of a report, one module per subject; each lists its builders in PLOTS."""

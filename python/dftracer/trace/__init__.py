"""Reading of traces. Knows files and records, neither reports nor commands."""

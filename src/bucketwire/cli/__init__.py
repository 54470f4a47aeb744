"""The command line: reads the environment, wires the parts, prints."""

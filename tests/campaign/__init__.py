"""A random campaign against the command line: ``python -m tests.campaign``.

Plans by grammar, examples with their text mutated, files of every other kind: whatever is given,
a command answers or refuses in plain lines, soon, without tracebacks and warnings.
"""

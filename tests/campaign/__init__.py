"""A random campaign against the command line: ``python -m tests.campaign --seconds 600``.

Plans by grammar, examples with their text, files or arguments spoiled, files of every other kind:
whatever is given, a command answers or refuses in plain lines with file and line, within ten
seconds, without tracebacks, warnings, control characters, and numbers that are not finite. Of plans
that have an optimum no sampled vector is better; the order of rules and their units change nothing,
more bandwidth is never slower, higher prices are never cheaper.

The seed is printed first; ``--seed N`` draws the same cases again, and ``--first K`` begins with
case K. The files, the command and the output of every find are kept in a folder of its own, also of
the case that runs when the process itself dies. The exit code is 1 where something was found.
``tests/properties/test_campaign.py`` runs a few fixed cases with the other tests.
"""

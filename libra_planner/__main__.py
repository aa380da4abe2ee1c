"""``python -m libra_planner``."""

try:
    from libra_planner.cli.main import main

    code = main()
except KeyboardInterrupt:  # While Python was still importing.
    code = 130
raise SystemExit(code)

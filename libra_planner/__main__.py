"""``python -m libra_planner``."""

from libra_planner.cli.main import main

raise SystemExit(main())

"""``python -m robustnmf`` is the command line."""

from robustnmf.cli import main

raise SystemExit(main())

"""One proof a rule: what the linter flags does go wrong when it runs, and the mend does not.

``torchrun --nproc-per-node 2 -m runtime_checks`` runs all of them; ``ddp-lint verify`` does the
same from an installed package.  ``reference.py`` is the training loop with everything right.
"""

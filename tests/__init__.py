"""Tests by subject; ``cases`` holds programs that are linted, never imported."""

"""Shared parts."""

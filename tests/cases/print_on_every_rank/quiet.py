"""Makes print quiet for all files of a program."""

import builtins


def setup_for_distributed(is_master):
    spoken = builtins.print

    def print(*args, force=False, **kwargs):
        if is_master or force:
            spoken(*args, **kwargs)

    builtins.print = print

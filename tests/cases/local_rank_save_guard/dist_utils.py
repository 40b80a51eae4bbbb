"""A guard that says "main" and means "first on this node"."""

import os


def if_main_process():
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"]) == 0
    return True

from setuptools import setup

setup(
    name="project",
    # install_requires=["torch>=2.4"] from the next version on
    install_requires=["numpy", "torch >= 1.6, < 2.4"],
)

"""Toy environments and generators shared by the tests, the docs and the notebooks.

`trajlab.testing.ppo` trains a small PPO on a gymnax environment. It needs gymnax and optax, so it is imported by its
own name and not from here.
"""

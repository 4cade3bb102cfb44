"""Several processes: worker processes of one command, and data-parallel training of one model.

May import errors and options only.  Start with :func:`cognn.parallel.workers.in_parallel`, which runs independent
tasks, or with :func:`cognn.parallel.devices.make_fabric`, which joins the processes that train one model;
:mod:`~cognn.parallel.cluster` detects those that torchrun or SLURM started.
"""

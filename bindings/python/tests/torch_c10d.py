"""Run tests of torch's own suite of torch.distributed, which its packages contain, over Pleach.

Arguments: names of tests. Prints how each ends on this rank.
"""

import importlib.util
import os
import sys
import types
import unittest

import torch
import torch.distributed as dist

import pleach.torch

torch.set_num_threads(1)
group = pleach.torch.init()

# The suite reads these.
os.environ.update(BACKEND="pleach", INIT_METHOD="none", WORLD_SIZE=str(dist.get_world_size()))
if importlib.util.find_spec("expecttest") is None:  # not in Debian 12; only its base class is needed
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)  # type: ignore[assignment]
from torch.testing._internal import common_distributed  # noqa: E402

for feature in "ddp", "gpu", "plugin", "subgroup":  # tests are skipped for backends that are not in these lists
    common_distributed.DistTestCases.backend_feature[feature].add("pleach")
common_distributed.skip_if_small_worldsize = lambda f: f  # tests of groups need 3 processes, and are skipped below 8
from torch.testing._internal.common_utils import TestCase  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402


class Cases(distributed_test.DistributedTest._DistTestBase, TestCase):
    rank, world_size = dist.get_rank(), dist.get_world_size()

    def _barrier(self, *args, **kwargs):
        dist.barrier()


for name in sys.argv[1:]:
    result = unittest.TestResult()
    Cases(name).run(result)
    print(name, "skipped" if result.skipped else "passed" if result.wasSuccessful() else "failed", flush=True)
    for _, text in result.skipped + result.failures + result.errors:
        print(text, flush=True)
group.finalize()

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from ksql.core.codegen import define


def test_a_workers_traceback_shows_the_line_of_generated_code(runtime):
    def fails(batches):
        function = define("probe", "def f(x):\n    y = x - 1\n    return 1 // y\n", {})["f"]
        for batch in batches:
            function(1)
            yield batch

    with pytest.raises(PythonException) as caught:
        runtime.session.range(1).mapInArrow(fails, "id long").collect()
    assert ': probe>", line 3, in f\n    return 1 // y\n' in str(caught.value)

"""FR3E on verl over a Ray cluster that is there already, of two nodes, as with_ray.sh makes one: the way of the 32B runs."""

from pathlib import Path

import pytest

pytest.importorskip("verl")

from fr3e.engine.verl import state
from fr3e.engine.verl.metrics import read_rows
from fr3e.files import read_json
from tests.engine.verl.verl_runs import DEVICE, Attempt, Materials, of_session, saved, small_run, two_nodes

pytestmark = [pytest.mark.verl, pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.mark.skipif(DEVICE != "cpu", reason="two raylets on one host would share its GPUs")
def test_two_nodes_of_one_rank_train_save_and_leave_the_cluster_clean(materials: Materials, tmp_path: Path) -> None:
    run = small_run(materials, "fr3e", ranks=1, verl={"nodes": 2}, optim={"updates": 2})
    with two_nodes(tmp_path) as cluster:
        attempt = Attempt(run, tmp_path / "out", hold=1, environment=cluster)
        attempt.wait_until_held()
        session = attempt.session()
        attempt.release()
        ended = attempt.end()
        assert ended.code == 0, ended.said[-3000:]
        assert of_session(session) == []
    rows = read_rows(tmp_path / "out" / "metrics.jsonl")
    assert [row["update"] for row in rows] == [0, 1, 2]
    assert rows[1]["mismatch/mean"] < 1e-4, "the plug-in's variables have to reach the workers of both nodes"
    assert saved(tmp_path / "out") == [2]
    actor = state.folder_of(tmp_path / "out" / "checkpoint", 2) / "actor"
    assert read_json(actor / "fsdp_config.json")["world_size"] == 2

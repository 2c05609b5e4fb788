"""`fr3e doctor` on Slurm: clusters on which a job would wait for ever, as commands that answer like Slurm's."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fr3e.cluster import finding
from fr3e.cluster.finding import Finding
from fr3e.cluster.slurm import DEFAULTS, Request, gpus_of, minutes, records, requests, slurm
from fr3e.config import load_scenario

ROOT = Path(__file__).resolve().parents[2]
PARTITION = (
    "PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 MaxCPUsPerNode=UNLIMITED Nodes=n[1-6] "
    "State=UP TotalCPUs=768 TotalNodes=6 JobDefaults=(null) DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED TRES=cpu=768"
)
NODE = (
    "NodeName=n{number} Arch=x86_64 CoresPerSocket=64 CPUAlloc=0 CPUEfctv=128 CPUTot=128 CPULoad=0.10 "
    "ActiveFeatures=(null) Gres=gpu:h100:8(S:0-1) NodeAddr=n{number} OS=Linux 6.1.0 #1 SMP Debian 6.1 RealMemory=2000000 "
    "AllocMem=0 Sockets=2 Boards=1 State=IDLE ThreadsPerCore=1 Partitions=cpu,gpu BootTime=2026-01-01T00:00:00 "
    "CfgTRES=cpu=128,mem=2000000M,billing=128,gres/gpu=8 Comment=a word = another"
)
SOUND = {
    "partition": "\n".join(PARTITION.format(name=name) for name in ("cpu", "gpu")),
    "node": "\n".join(NODE.format(number=number) for number in range(1, 7)),
    "config": "Configuration data as of 2026-01-01T00:00:00\nMinJobAge               = 300 sec\n",
}
Check = Callable[..., Finding]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """The finding about the paper's scenario on a sound cluster in which texts are replaced: (where, old, new)."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(finding, "SITE", tmp_path / "site.yaml")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def find(*edits: tuple[str, str, str], scenario: str = "paper") -> Finding:
        texts = dict(SOUND)
        for where, old, new in edits:
            assert re.search(old, texts[where]), old
            texts[where] = re.sub(old, new, texts[where])
        script = '#!/bin/sh\ncase "$*" in\n'
        for where, text in texts.items():
            script += f"*show\\ {where}*) /bin/cat <<'END'\n{text}\nEND\n;;\n"
        for name, content in (("sbatch", "#!/bin/sh\n"), ("scontrol", script + "esac\n")):
            (folder / name).write_text(content, encoding="utf-8")
            (folder / name).chmod(0o755)
        return slurm(load_scenario(f"config/{scenario}.yaml"))

    return find


def test_a_cluster_with_room_passes(check: Check) -> None:
    found = check()
    assert found.ok is True, found
    assert found.found == "partitions cpu, gpu have room for 5 kinds of jobs, MinJobAge 300 s"
    assert check(("node", "State=IDLE", "State=IDLE+CLOUD+POWERED_DOWN")).ok is True, (
        "a cloud starts its nodes for a job"
    )
    assert check(("node", r"Gres=gpu:h100:8\(S:0-1\)", "Gres=gpu:h100:4(S:0,1),gpu:a100:4,shard:16")).ok is True
    assert check(scenario="demo").ok is True


@pytest.mark.parametrize(
    ("edit", "says", "remedy"),
    [
        (("partition", "Name=gpu", "Name=h100"), "no partition gpu; there are cpu, h100", "config/site.yaml"),
        (("partition", "State=UP", "State=INACTIVE"), "partition gpu is INACTIVE", "administrator"),
        (("partition", "MaxTime=2-", "MaxTime=1-"), "train asks for 2880 minutes, partition gpu allows 1440", "train.runtime"),
        (("partition", "MaxTime=2-00:00:00", "MaxTime=03:00:00"), "export asks for 240 minutes, partition cpu allows 180", "export"),
        (("partition", "MaxNodes=UNLIMITED", "MaxNodes=2"), "train asks for 4 nodes, partition gpu allows 2", "train"),
        (("partition", "MaxMemPerNode=UNLIMITED", "MaxMemPerNode=500000"), "900000 MB a node, partition gpu allows", "train"),
        (("node", "State=IDLE", "State=IDLE+DRAIN"), "has 0 nodes in service of 6", "sinfo -R"),
        (("node", r"(NodeName=n[1-3] .*)State=IDLE", r"\1State=DOWN*"), "train needs 4 nodes, partition gpu has 3", "sinfo -R"),
        (("node", r"gpu:h100:8\(S:0-1\)", "gpu:h100:4"), "nodes with 8 GPUs each, partition gpu has 6", "gpus_per_node"),
        (("node", r"Gres=gpu:h100:8\(S:0-1\)", "Gres=(null)"), "sample needs 1 nodes with 1 GPUs", "tensor_parallel"),
        (("node", "RealMemory=2000000", "RealMemory=500000"), "nodes with 900000 MB each", "resources.train.mem_mb"),
        (("node", "CPUTot=128", "CPUTot=32"), "nodes with 64 cores each", "resources.train.cpus"),
        (("node", "Partitions=cpu,gpu", "Partitions=gpu"), "export needs 1 nodes, partition cpu has 0", "sinfo -R"),
        (("config", "300", "60"), "MinJobAge is 60 s", "MinJobAge >= 120"),
        (("partition", "(?s).*", ""), "no partition cpu; there are none", "config/site.yaml"),
        (("node", "(?s).*", "nothing of use"), "has 0 nodes in service of 0", "sinfo -R"),
    ],
)  # fmt: skip
def test_a_cluster_on_which_jobs_wait_for_ever_fails(
    check: Check, edit: tuple[str, str, str], says: str, remedy: str
) -> None:
    found = check(edit)
    assert found.ok is False
    assert says in found.found, found.found
    assert remedy in found.remedy, found.remedy


def test_the_sites_partitions_are_those_that_are_looked_at(check: Check) -> None:
    finding.SITE.write_text("gpu_partition: h100\ncpu_partition: small\n", encoding="utf-8")
    assert "no partition h100" in check().found and "no partition small" in check().found
    renamed = (("partition", "Name=gpu", "Name=h100"), ("partition", "Name=cpu", "Name=small"))
    assert check(*renamed, ("node", "Partitions=cpu,gpu", "Partitions=small,h100")).ok is True


def test_what_the_paper_asks_for(check: Check) -> None:
    asked = requests(load_scenario("config/paper.yaml"))
    assert Request("train", "gpu", 4, 8, 64, 900000, 2880) in asked
    assert Request("train", "gpu", 1, 8, 64, 900000, 2880) in asked
    assert Request("sample", "gpu", 1, 1, 16, 200000, 720) in asked
    # One job grades a model: eight benchmarks side by side, then the scores.
    assert Request("grade", "cpu", 1, 0, 8 * 2, 8 * 4000, 60 + 60) in asked


def test_gpus_of_another_type_do_not_count(check: Check) -> None:
    finding.SITE.write_text("gpu_type: h200\n", encoding="utf-8")
    assert "nodes with 8 GPUs each" in check().found
    finding.SITE.write_text("gpu_type: h100\n", encoding="utf-8")
    assert check().ok is True


def test_defaults_and_partitions_are_those_of_the_rules() -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk"))
    found = re.findall(r'stage_resource\("(\w+)", "(mem_mb|runtime)", (\d+)\)', rules)
    assert {(stage, key): int(value) for stage, key, value in found} == {
        (stage, key): value
        for stage, pair in DEFAULTS.items()
        for key, value in zip(("mem_mb", "runtime"), pair, strict=True)
    }
    for stage in ("base_model", "export", "grade", "score"):
        rule = rules.split(f"rule {stage}:")[1].split("shell:")[0]
        assert "**slurm()" in rule, f"{stage} goes to the profile's partition, not the site's"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2-00:00:00", 2880), ("1-12", 2160), ("03:30:00", 210), ("30:00", 30), ("45", 45), ("UNLIMITED", float("inf")), ("", float("inf"))],
)  # fmt: skip
def test_times(text: str, expected: float) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("gres", "count"),
    [("gpu:8", 8), ("gpu:h200:8(S:0,1)", 8), ("gpu:a:4,gpu:b:4", 8), ("(null)", 0), ("gpu", 1), ("nvme:2", 0), ("", 0)],
)
def test_gres(gres: str, count: int) -> None:
    assert gpus_of({"Gres": gres}) == count


def test_records_keep_words_with_their_value() -> None:
    (record,) = records(NODE.format(number=1))
    assert record["OS"] == "Linux 6.1.0 #1 SMP Debian 6.1"
    assert (record["RealMemory"], record["Comment"]) == ("2000000", "a word = another")

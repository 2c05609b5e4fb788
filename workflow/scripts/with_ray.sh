#!/usr/bin/env bash
# Run a command with a Ray cluster over all nodes of this Slurm allocation, and leave no process behind.
#   with_ray.sh --nodes N --gpus G [--container IMAGE] [--scratch DIR] -- PYTHON [ARG ...]
# One node, or no Slurm: the command starts its own local Ray in DIR (/tmp; FR3E_RAY_SCRATCH). On more nodes: a head
# on the first, a worker on each other one, wait until Ray sees all N x G GPUs, run the command with RAY_ADDRESS set,
# tear down on success, failure, SIGTERM, SIGINT and Slurm's time limit. Exit code: that of the command; 70 when the
# cluster did not come up within FR3E_RAY_WAIT seconds (300).
set -euo pipefail

die() { echo "with_ray: $*" >&2; exit 70; }
say() { echo "with_ray: $*" >&2; }

nodes=1 gpus=0 container='' scratch=/tmp
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2; shift 2 ;;
    --gpus) gpus=$2; shift 2 ;;
    --container) container=$2; shift 2 ;;
    --scratch) scratch=$2; shift 2 ;;
    --) shift; break ;;
    *) die "unknown argument '$1'; usage: with_ray.sh --nodes N --gpus G -- COMMAND" ;;
  esac
done
[ $# -gt 0 ] || die "no command after --"

# In an image, Python and Ray are the image's own; Slurm's commands stay outside.
inside=()
if [ -n "$container" ]; then inside=(apptainer exec --nv --bind "$PWD" --bind "$scratch" "$container"); set -- python3 "${@:2}"; fi

job=${SLURM_JOB_ID:-}
# The end of the time limit, so that a run writes its checkpoint before it; a job without a limit has none.
ends=$([ -z "$job" ] || squeue -h -j "$job" -o %e || true)
if [[ $ends =~ ^[0-9]{4}-[0-9]{2}- ]]; then FR3E_JOB_END=$(date -d "$ends" +%s); export FR3E_JOB_END; fi
if [ -z "$job" ] || [ "$nodes" -le 1 ]; then export FR3E_RAY_SCRATCH=$scratch; exec "${inside[@]}" "$@"; fi

# Snakemake's job step hides most SLURM_* variables, so the node list is asked for by job id.
mapfile -t hosts < <(scontrol show hostnames "$(squeue -h -j "$job" -o %N)")
[ "${#hosts[@]}" -eq "$nodes" ] || die "job $job has ${#hosts[@]} nodes (${hosts[*]}), the run needs $nodes"

python=("${inside[@]}" "$1")
if [ -n "$container" ]; then ray=("${inside[@]}" ray); else
  ray=("$(dirname "$1")/ray")
  [ -x "${ray[0]}" ] || die "no ray beside $1; name verl's interpreter in config/site.yaml (verl_python)"
fi
head=${hosts[0]}
address() { scontrol show node -o "$1" | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p'; }
head_ip=$(srun --overlap -N1 -n1 -w "$head" getent ahostsv4 "$(address "$head")" | awk 'NR == 1 {print $1}')
[ -n "$head_ip" ] || die "$head does not resolve to an address"
port=$((20000 + job % 20000))
scratch=$scratch/fr3e-ray-$job
# A socket's path has at most 107 bytes, and Ray needs about 65 of them below this folder.
[ ${#scratch} -le 42 ] || die "$scratch is too long a path for Ray's sockets; name a shorter ray_scratch in config/site.yaml"
# Ray asks for a token where one lies in the home folder, and only some of its commands then send it: this cluster has its own.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
pids=() driver=

# A daemon that a dying step left behind is found by the job's own mark in its environment, on its own node.
sweep='me=$$; for p in /proc/[0-9]*; do { tr "\0" "\n" < "$p/environ"; } 2>/dev/null | grep -qx "FR3E_RAY_JOB=$1" && [ "${p#/proc/}" != "$me" ] && [ "${p#/proc/}" != "$PPID" ] && kill -9 "${p#/proc/}" 2>/dev/null; done; rm -rf "$2"; true'

teardown() {
  local status=$?
  trap - EXIT
  trap '' TERM INT
  if [ -n "$driver" ] && kill -0 "$driver" 2>/dev/null; then
    kill -TERM "$driver" 2>/dev/null || true
    for _ in $(seq "${FR3E_TERM_WAIT:-120}"); do kill -0 "$driver" 2>/dev/null || break; sleep 1; done
    kill -KILL "$driver" 2>/dev/null || true
    wait "$driver" 2>/dev/null && status=0 || status=$?
  fi
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for _ in $(seq 20); do
    alive=0; for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && alive=1; done
    [ "$alive" = 0 ] && break; sleep 0.5
  done
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  srun --overlap -N"$nodes" -n"$nodes" --ntasks-per-node=1 env -u FR3E_RAY_JOB bash -c "$sweep" _ "$job" "$scratch" 2>/dev/null && say "all nodes are clean" || { rm -rf "$scratch"; say "the allocation is gone; Slurm ends what was left on its nodes"; }
  exit "$status"
}
trap teardown EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

start() { # start NODE ARGUMENTS of `ray start`
  local node=$1 cpus; shift
  # Since Slurm 22.11 a step does not inherit the job's CPUs per task: unnamed, Ray and vLLM would share one core.
  cpus=$(scontrol show job -o "$job" | sed -n 's/.* CPUs\/Task=\([0-9][0-9]*\).*/\1/p')
  FR3E_RAY_JOB=$job srun --overlap -N1 -n1 -w "$node" ${cpus:+-c "$cpus"} --cpu-bind=none \
    ${gpus:+--gpus-per-node="$gpus"} --export=ALL \
    "${ray[@]}" start --block --num-gpus="$gpus" --temp-dir="$scratch" --disable-usage-stats "$@" >&2 &
  pids+=($!)
}

say "head on $head ($head_ip:$port), workers on ${hosts[*]:1}"
start "$head" --head --node-ip-address="$head_ip" --port="$port" --include-dashboard=false
seen() { RAY_ADDRESS=$head_ip:$port "${python[@]}" - 2>/dev/null <<'PY'
import ray
ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
print(sum(1 for node in ray.nodes() if node["Alive"]), int(ray.cluster_resources().get("GPU", 0)))
PY
}
deadline=$((SECONDS + ${FR3E_RAY_WAIT:-300}))
until [ -n "$(seen)" ]; do
  kill -0 "${pids[0]}" 2>/dev/null || die "the Ray head on $head ended at once"
  [ $SECONDS -lt $deadline ] || die "the Ray head on $head did not answer"
  sleep 1
done
for node in "${hosts[@]:1}"; do start "$node" --address="$head_ip:$port"; done
until [ "$(seen)" = "$nodes $((nodes * gpus))" ]; do
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || die "a Ray process ended while the cluster was starting"; done
  [ $SECONDS -lt $deadline ] || die "Ray sees '$(seen)' (nodes GPUs), $nodes $((nodes * gpus)) are needed"
  sleep 1
done
say "Ray sees $nodes nodes and $((nodes * gpus)) GPUs"
export RAY_ADDRESS=$head_ip:$port
"${inside[@]}" "$@" &
driver=$!
wait "$driver" && status=0 || status=$?
driver=
exit "$status"

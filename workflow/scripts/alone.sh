#!/usr/bin/env bash
# Run Snakemake as the only one that make started in this folder: alone.sh SNAKEMAKE [ARG ...]
# A second one is refused. A call that was killed or whose terminal closed leaves Snakemake's own lock behind: the next call
# here takes it away, unless a Snakemake that was started without make is at work in this folder.
set -euo pipefail
mkdir -p .snakemake
exec 9>>.snakemake/make.lock
# Not -n: threads of a process that is just ending may hold it for a moment.
if ! flock -w 2 9; then
  echo "make: another make demo or make demo-ablations is at work in this folder; wait for it, or end it with Ctrl-C" >&2
  exit 1
fi
if [ -s .snakemake/make.lock ]; then
  for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/cwd" 2>/dev/null)" = "$(pwd -P)" ] && tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q snakemake &&
      [ "${process#/proc/}" != $$ ] && [ "${process#/proc/}" != $PPID ]; then
      echo "make: process ${process#/proc/} runs Snakemake in this folder; wait for it, or end it" >&2
      exit 1
    fi
  done
  "$@" --unlock
fi
echo "unfinished" >.snakemake/make.lock
# A signal that ends this script, or Snakemake alone, leaves the mark there.
"$@" && status=0 || status=$?
[ "$status" -ge 128 ] || : >.snakemake/make.lock
exit "$status"

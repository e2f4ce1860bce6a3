#!/usr/bin/env bash
# The whole pipeline inside one Slurm allocation. Arguments are settings files, as for snakemake --configfile:
#   sbatch workflow/allocation.sh                             one task: sweeps on all its cores
#   sbatch --ntasks=8 workflow/allocation.sh my.yaml          eight tasks, on any nodes: a Dask worker each
# Run from the folder of the Snakefile with the environment active. Run again, it goes on where it was stopped.
# Where nodes have several networks, name the one to use: DASK_INTERFACE=ib0 sbatch ...
#SBATCH --job-name=gibbsite
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=4G
#SBATCH --time=04:00:00
set -euo pipefail

cpus=${SLURM_CPUS_PER_TASK:-1}
own=$(mktemp -d "$PWD/.allocation.XXXXXX")
# Ends the scheduler and the workers too, however this script ends.
trap 'kill $(jobs -p) 2> "$own/kill.log" || true; wait; rm -rf "$own"' EXIT
trap 'exit 143' TERM

if [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
  interface=${DASK_INTERFACE:+--interface $DASK_INTERFACE}
  # shellcheck disable=SC2086
  dask scheduler --scheduler-file "$own/scheduler.json" --port 0 --no-dashboard $interface &> "$own/scheduler.log" &
  scheduler=$!
  # shellcheck disable=SC2086
  srun --overlap dask worker --scheduler-file "$own/scheduler.json" --nworkers 1 --nthreads "$cpus" --no-dashboard \
    --local-directory "$own" --death-timeout 60 $interface &> "$own/workers.log" &
  until [ -s "$own/scheduler.json" ]; do
    kill -0 "$scheduler" || { cat "$own/scheduler.log"; exit 1; }
    sleep 0.2
  done
  echo "cluster: {kind: address, address: '$own/scheduler.json', min_workers: $SLURM_NTASKS}" > "$own/cluster.yaml"
else
  echo "cluster: {kind: local, workers: 1, threads: $cpus}" > "$own/cluster.yaml"
fi

# In the background, so that a signal is heard at once and not when snakemake has ended.
snakemake --workflow-profile workflow/profiles/local --cores "$cpus" --configfile "$@" "$own/cluster.yaml" &
wait $!

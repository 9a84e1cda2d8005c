#!/bin/sh
# slurm-worker.sh - one worker a GPU: QUEUE=postgres://USER@HOST/DB sbatch slurm-worker.sh
# Two minutes before the end Slurm sends TERM: the workers give their jobs back, and others take them.
#SBATCH --job-name=musacoder-worker
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
set -u
: "${QUEUE:?name the queue, a server of PostgreSQL: QUEUE=postgres://USER@HOST/DATABASE}"
srun --gpu-bind=single:1 "${MUSACODER:-musacoder}" worker --queue "$QUEUE" --backend "${BACKEND:-cuda}" \
    --kind "${KIND:-both}" &
step=$!
trap 'kill -TERM "$step" 2>/dev/null' TERM INT
wait "$step"
wait "$step" 2>/dev/null

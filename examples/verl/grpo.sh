#!/bin/sh
# grpo.sh MODEL DATA - GRPO in verl 0.9 with the judge's rewards. MUSACODER_URL names the judge; DATA is prepare.py's.
set -eu
: "${MUSACODER_URL:?name the judge, such as http://127.0.0.1:8642}"
model=$1 data=$2
shift 2
exec python -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="$data/train.parquet" data.val_files="$data/val.parquet" \
    data.max_prompt_length=8192 data.max_response_length=8192 \
    actor_rollout_ref.model.path="$model" actor_rollout_ref.rollout.n=8 \
    reward.custom_reward_function.path=pkg://musacoder.adapters.verl \
    reward.custom_reward_function.name=compute_score \
    trainer.v1.sampler.sync_refill_failed_groups=True \
    "$@"

"""table.py - the mutants of run.py: what is broken, where, by which edits, and the tests of which one must fail.

A row is m(name, file, old, new, tests...); more than one edit is a list of pairs in place of old and new. 'old' must
be in the file exactly once. Tests are programs of tests/, without '.c'. Write a row for each promise that a test should
keep.
"""

import collections

Mutant = collections.namedtuple("Mutant", "name file edits tests")
MUTANTS = []


def m(name, file, *rest):
    edits, tests = (rest[0], rest[1:]) if isinstance(rest[0], list) else ([(rest[0], rest[1])], rest[2:])
    MUTANTS.append(Mutant(name, "src/" + file, edits, tests))


WIRING, RL, JUDGE = "train/test_wiring", "train/test_rl", "verdicts/test_verdicts"
SWITCHES, EDITS = "train/test_rl_switches", "train/test_edits"

# ---- the loops of training: is every part connected? ----

m("PrimeEcho unused", "train/rl.c", "if (s->o->primeecho && s->o->turns > 1)", "if (0)", WIRING)
m("no stop at the first pass", "train/rollout.c",
  [("if (r->turn[t->k].kind == OUTCOME_FAILED && r->turns < o->turns)", "if (r->turns < o->turns)"),
   ("r->turn[t->k - 1].kind != OUTCOME_FAILED || ", "")], WIRING)
m("loss on the last response", "train/rl.c",
  "*prompt = &b->g[group].prompt;\n    const struct rollout_turn *first = &r->turn[0];",
  "*prompt = &b->g[group].prompt;\n    const struct rollout_turn *first = &r->turn[r->turns - 1];", WIRING)
m("SFT on the first response", "train/data.c", "c->responses[c->n_responses - 1]", "c->responses[0]", WIRING)
m("SFT on every token", "train/data.c", "ex->from = (int)s.from;", "ex->from = 1;", WIRING)
m("RFT keeps failing programs", "train/rft.c", "if (g->r[k].passed_turn != 1)", "if (g->r[k].turns == 0)", WIRING)
m("infra samples kept", "train/rollout.c", " && !rollout_has(r, OUTCOME_INFRA)", "", WIRING)
m("unsupported samples kept", "train/rollout.c", " && !rollout_has(r, OUTCOME_UNSUPPORTED)", "", WIRING)
m("retry takes groups that did not fail", "train/rl.c",
  "        if (g->r[k].passed_turn)\n            return false;\n", "", WIRING)
m("retry counts samples without a verdict", "train/rl.c", "return scored >= 2;", "return true;", WIRING)
m("repair prompt without program and feedback", "train/rl.c",
  "    prompt_turn(messages, s->o->style, it->response, it->feedback, s->o->edits ? it->response : NULL);\n", "",
  WIRING)
m("retry forgets the feedback", "train/rl.c", "rollout_program(t), t->feedback);",
  "rollout_program(t), \"x\");", WIRING)
m("feedback replaced by x", "train/rollout.c", "prompt_feedback(o->style, u->feedback,",
  "prompt_feedback(o->style, \"x\",", WIRING)
m("no numbered lines in rollouts", "train/rollout.c", "o->edits ? rollout_program(u) : NULL", "NULL", EDITS)
m("lines are judged as they are", "train/rollout.c", "u->written = before ? mend_apply(before, u->text) : NULL;", "",
  EDITS)
m("repair tasks forget what failed", "train/rollout.c", "t->k ? rollout_program(u - 1) : g->before",
  "t->k ? rollout_program(u - 1) : NULL",
  EDITS)
m("the log forgets what lines stand for", "train/rollout_log.c",
  "        t->written = xstrdup(json_str(v, \"written\", \"\"));\n", "        ;\n", EDITS)
m("edits of lines that are not there", "task/repair_text.c", "number < n && repair_text_fits(text)",
  "(number %= n, repair_text_fits(text))",
  "task/test_mend")
m("an edit ends the string", "task/repair_text.c", "number < n && repair_text_fits(text)", "number < n",
  "task/test_mend")
m("lines numbered from the first kernel", "task/repair_text.c", "repair_text_add_numbered(out, s, i, l.v[i]);",
  "repair_text_add_numbered(out, s, i + 1, l.v[i]);",
  "task/test_mend")
m("harvested failures are written out", "train/harvest.c", "    if (h->o->edits)\n        answer",
  "    if (0)\n        answer", EDITS)
m("epochs ignored", "train/rl.c", "u < parts * s->o->epochs", "u < parts", WIRING)
m("KL to the policy itself", "train/rl.c",
  "policy_gradient(s->m, s->ref, ", "policy_gradient(s->m, s->ref ? s->m : NULL, ",
  WIRING)
m("minibatches split groups", "train/rl.c", "size_t from = b->cut[u % parts], to = b->cut[u % parts + 1];",
  "size_t from = b->n_seqs * (size_t)(u % parts) / (size_t)parts,\n"
  "               to = b->n_seqs * (size_t)(u % parts + 1) / (size_t)parts;", WIRING)
m("a repair prompt of any length", "train/rl.c", "if ((int)g->prompt.ids.n <= s->room)\n        return true;",
  "if (1)\n        return true;", WIRING)
m("a prompt of any length", "train/rl.c", "if ((int)g->prompt.ids.n <= s->room)\n            return 0;",
  "if (1)\n            return 0;", WIRING)
m("a dialogue of any length", "train/rollout.c", "r->full = (int)r->chat.ids.n > t->room;", "r->full = false;", WIRING)
m("RFT samples prompts of any length", "train/rollout.c", "if ((int)g->prompt.ids.n > t->room)", "if (0)", WIRING)
m("learning at temperature 1", "train/rl.c", "own.policy.temperature = o->temperature;", "own.policy.temperature = 1;",
  WIRING)
m("strict keeps the sampler's log-probs", "train/rl.c", "        b->seqs[i].behav = b->scored[i];\n", "        ;\n", RL)
m("mismatch of log-probs is not counted", "train/policy.c", "mis->worst = fmax(mis->worst, d);", "", RL)
m("no schedule", "train/rl.c", "schedule_lr(&s->o->schedule, s->step) *", "s->o->schedule.peak *", WIRING)
m("the judge's options are dropped", "train/rl.c",
  "                                 .options = o->verdict};", "                                 };", WIRING)
m("a step learned twice without signal", "train/rl.c", "if (!(norm > 0))\n        return 0;", "", WIRING)
m("resume draws the first prompts again", "train/asker.c",
  "a->drawn = json_i64(state, \"drawn\", 0);", "a->drawn = 0;", RL)
m("updates counted that were not made", "train/rl.c", "{\"updates\", l->updates}", "{\"updates\", s->o->epochs}",
  WIRING)
m("masked share of all alike", "train/policy.c", "p->st->masked[q->adv > 0] +=", "p->st->masked[0] +=",
  "train/test_policy")
m("oversampling keeps the first groups", "train/rl.c", "if (rl_is_mixed(s, b, i) == mixed)", "if (mixed)", SWITCHES)
m("rewards are not permuted", "train/rl.c", "    if (s->o->permute_rewards)\n", "    if (0)\n", SWITCHES)
m("failures weigh as successes", "train/rl.c", "    rl_weigh_negative(s, b->adv + at);\n", "", SWITCHES)
m("the last weights are saved", "train/rl.c", "if (!(s->o->average > 0))", "if (1)", SWITCHES)
m("the mean is over all steps", "train/rl.c", "average_init(&s->average, s->m, o->steps / 2 + 1);",
  "average_init(&s->average, s->m, 1);", SWITCHES)
m("resume forgets the sum", "train/rl.c", "rc = average_load(&s->average, s->o->out, s->step, e);", "rc = 0;", SWITCHES)
m("RL's optimiser starts cold", "train/rl.c", "return checkpoint_moments(o->model, s->opt, e);", "return 0;", SWITCHES)
m("SFT's optimiser starts cold", "train/sft.c", "return checkpoint_moments(o->model, s->opt, e);", "return 0;",
  "train/test_sft")
m("warm-up by steps", "train/rl.c", "schedule_warm(s->updates, ", "schedule_warm(s->step, ", SWITCHES)
m("nobody sleeps", "train/asker.c", "if (!a->sleep || scored == 1)", "if (1)", SWITCHES)
m("what has no verdict keeps awake", "train/asker.c", "scored == 1)", "scored < 2)", SWITCHES)
m("failed groups keep awake", "train/asker.c", "passed == 0 || passed == scored", "passed == scored", SWITCHES)
m("a dropped parameter stays in the call", "synth/surface/surface_wiring.c", ", wiring_take(&e, &f.call, at);", ";",
  "synth/test_surface_mutate")
m("wiring takes a name's end for it", "synth/surface/surface_wiring.c", "torch::Tensor %s_forward(\", new",
  "%s_forward(\", new", "synth/test_surface_mutate")
m("a failure is mended twice", "train/rft_repairs.c", "!rft_said_before(g, k) &&", "", "train/test_rft_repairs")
m("edits end with the kernel", "task/repair_text.c", "for (int k = 0; k < N_PARTS; k++)", "for (int k = 0; k < 1; k++)",
  "task/test_mend")
m("prompts passed by wake sleepers", "train/asker.c", "a->asked - a->since[i] >=", "a->drawn - a->since[i] >=",
  SWITCHES)
m("no rest for a prompt", "train/asker.c", ": n / REST)", ": 0)", SWITCHES)
m("the retry gate never shuts", "objective/bdr.c", "return scored == 0 || passed >= min * scored;", "return true;",
  "objective/test_bdr")
m("resume forgets the retry buffer", "train/rl.c",
  "rc = bdr_load(&s->bdr, json_object_get(state, \"bdr\"), e);", "rc = 0;",
  RL)
m("max-keep ignored", "train/rft.c", "c < clusters && (int)c < s->o->max_keep", "c < clusters", WIRING, RL)
m("RFT keeps what teaches nothing", "train/rft.c", " && rft_teaches(s->o, n)", "", RL)
m("cut answers count as whole", "task/extract.c", "return x.found && x.closed && x.defines_modelnew;",
  "return x.found;", "task/test_extract")
m("RFT counts infra as failures", "train/rft.c", "judged = t->samples - t->infra - t->too_long", "judged = t->samples",
  WIRING)
m("SFT does not learn", "train/sft.c", "return optim_step(s->opt, s->m, *ret_lr, e);", "return 0;", WIRING)

m("a word behind a switch is dropped", "base/opt.c",
  "opt_check_switch(row, argc, argv, *i, e) < 0 ? -1 : opt_set_text(o, row, \"true\", e)",
  "opt_set_text(o, row, \"true\", e)",
  "base/test_base")
m("changed tokens weigh as others", "train/sft.c",
  "ex->changed[k] && s->o->changed_weight > 0 ? s->o->changed_weight : 1",
  "0 ? s->o->changed_weight : 1", WIRING)
m("every token of a repair is new", "train/changed.c", "            mask[j] = 0;\n", "", "train/test_changed")

# ---- verdicts: the client and its log ----

m("other options, same verdict", "verdicts/verdicts.c", "    sha256_adds(&h, v->options_text);\n", "", JUDGE)
m("other task, same verdict", "verdicts/verdicts.c", "    sha256_adds(&h, r->task_code);\n", "", JUDGE)
m("a file is a response", "verdicts/verdicts.c",
  "    if (!r->is_response)\n        sha256_adds(&h, \"file\");\n", "", JUDGE)
m("a ticket is told twice", "verdicts/verdicts.c", "        t->told = true;\n", "", JUDGE)
m("a stopped wait loses what was there", "verdicts/verdicts.c",
  "return rc < 0 ? (verdicts_tell(v, NULL), -1)", "return rc < 0 ? -1", JUDGE)
m("what is not scored sticks", "verdicts/verdicts.c", "if (verdicts_lasts(v, p->verdict))", "if (1)", JUDGE)
m("unsupported has a score", "train/outcome.c",
  "    if (!strcmp(status, \"unsupported\"))\n        return OUTCOME_UNSUPPORTED;\n",
  "    if (!strcmp(status, \"unsupported\"))\n        return OUTCOME_FAILED;\n", "train/test_outcome")
m("no backend for training", "verdicts/verdicts.c", "names[] = {\"backend\", ", "names[] = {", JUDGE)
m("verdict log loses its place", "verdicts/verdict_log.c", "l->end += (int64_t)n + 1;", "l->end += (int64_t)n;",
  "verdicts/test_verdict_log")
m("an unfinished line stays", "verdicts/verdict_log.c",
  "truncate(l->path, l->end) < 0", "0", "verdicts/test_verdict_log")
m("the oldest verdict wins", "verdicts/verdict_log.c",
  "|| l->slots[i].offset < at)", "|| at >= 0)", "verdicts/test_verdict_log")

# ---- formulas ----

m("equal rewards are a signal", "objective/advantage.c",
  "    if (advantage_all_equal(reward, valid, n))\n        return (int)k;\n", "",
  "objective/test_advantage", WIRING)
m("the last bit is a signal", "objective/advantage.c", "1e-12 * fmax(1.0, fabs(reward[first]))", "0",
  "objective/test_advantage")
m("population deviation", "objective/advantage.c", "sq / (double)(k - 1)", "sq / (double)k", "objective/test_advantage")
m("invalid samples in the mean", "objective/advantage.c",
  "        if (!advantage_used(valid, i))\n            continue;\n        if (!isf",
  "        if (!isf", "objective/test_advantage")
m("worst turn instead of best", "objective/primeecho.c", "best = fmax(best, score[k]);", "best = fmin(best, score[k]);",
  "objective/test_primeecho")
m("bonus of turn 2 is that of turn 1", "objective/primeecho.c",
  "passed_turn == 2 ? p->bonus2", "passed_turn == 2 ? p->bonus1",
  "objective/test_primeecho")
m("deviations cancel", "objective/mirrorpop.c", "abs_sum += fabs(x);", "abs_sum += x;", "objective/test_mirrorpop")
m("the newest failure falls out", "objective/bdr.c", "b->ring[(b->head + b->n) % b->cap] =\n        (struct bdr_item)",
  "b->ring[b->head] =\n        (struct bdr_item)", "objective/test_bdr")
m("no random number where the buffer is empty", "objective/bdr.c", "double u = rng_f64(r);",
  "double u = b->n ? rng_f64(r) : 1;", "objective/test_bdr")
m("partial results are worth nothing", "objective/reward.c", "*ret = -0.5 + 0.5 * q;", "*ret = -1;", "eval/test_pure")
m("an untrusted time counts", "objective/reward.c", " && json_flag(perf, \"trusted\", false) ? perf", " ? perf",
  "eval/test_pure")
m("no bound on the speedup", "objective/reward.c",
  "fmin(fmax(nu - 1, 0), p.nu_max)", "fmax(nu - 1, 0)", "eval/test_pure")
m("unsupported is scored", "objective/reward.c", " || !strcmp(status, \"unsupported\"))", ")", "eval/test_pure")
m("MirrorPop masks nothing", "train/policy.c", "!p->o->mirrorpop || mirrorpop_keep(&off, p->o->delta)", "true",
  "train/test_policy")
m("the wrong side is clipped", "train/ppo_loss.c", "ret->clipped = bounded > plain;", "ret->clipped = bounded < plain;",
  "train/test_ppo_loss")
m("k3 without its linear term", "train/kl.c", "*value = expm1(d) - d;", "*value = expm1(d);", "train/test_kl")
m("masked sequences make the others louder", "train/aggregate.c",
  "(after_mask && keep && !keep[i])", "(keep && !keep[i])",
  "train/test_aggregate")
m("the loss is one token late", "train/pack.c", "t + 1 >= s->from &&", "t >= s->from &&", "train/test_pack")
m("mix shares ignored", "train/mixture.c", "share[k] >= 0 ? share[k] :", "0 ? 0 :", "train/test_mixture")
m("a cheat in a later workload counts as its first failure", "eval/stage/workloads.c",
  "return -1;", "return 0;", "eval/test_workloads")
m("no limit to passes", "train/mixture.c", "share[k] = limit[k];", "limit[k] = share[k];", "train/test_mixture")
m("mix shares of records, not tokens", "train/mixture.c", "given[k] += d->ex[m->order[n]].n;", "given[k] += 1;",
  "train/test_mixture")
m("groups are cut", "train/minibatch.c", "        if (i > 0 && group[i] == group[i - 1])\n            continue;\n", "",
  "train/test_minibatch")
m("always the first of a cluster", "train/cluster.c", "k = rng_below(r, members);", "k = 0 * rng_below(r, members);",
  "train/test_cluster")
m("names make another strategy", "train/cluster.c", "? hash64(s, (size_t)(t - s), 1) : 2;",
  "? hash64(s, (size_t)(t - s), 1) : hash64(s, (size_t)(t - s), 2);", "train/test_cluster")
m("warm-up starts at 0", "train/lr_schedule.c", "(double)(step + 1) / (double)warm", "(double)step / (double)warm",
  "train/test_schedule")

# ---- bench ----

m("biased pass@k", "bench/passk.c", "miss *= 1 - (double)k / i;", "miss *= 1 - (double)c / n;", "bench/test_passk")
m("one failure too few", "bench/passk.c", "if (n - c < k)", "if (n - c <= k)", "bench/test_passk")
m("a failing program is faster", "bench/passk.c", "return passed && speedup > min;", "return speedup > min;",
  "bench/test_passk")
m("infra is a failure", "bench/bench_sum.c",
  "    if (verdict_infra(a->verdict)) {\n        s->infra++;\n        return;\n",
  "    if (verdict_infra(a->verdict)) {\n        s->infra++;\n", "bench/test_bench")
m("later passes count as first ones", "bench/bench_sum.c", "s->first[task].passed += passed;",
  "s->first[task].passed += turn >= 0;", "bench/test_bench")
m("best turns are first turns", "bench/bench_sum.c",
  "s->best[task].passed += turn >= 0;", "s->best[task].passed += passed;",
  "bench/test_bench")
m("missing samples left out", "bench/bench_sum.c", "    if (b->o.missing_fail)\n", "    if (0)\n", "bench/test_suites")
m("the bench shows no feedback", "bench/bench.c",
  "prompt_feedback(o->style, bench_feedback_shown(p->b, task, sample, k),", "prompt_feedback(o->style, \"x\",",
  "bench/test_bench")
m("shuffled feedback of any category", "bench/shown.c", "next_failure(b, slot, turn, true)",
  "next_failure(b, slot, turn, false)", "bench/test_bench")
m("shuffled feedback is one's own", "bench/shown.c", "case BENCH_FEEDBACK_SHUFFLED: return shown_of_another(b, slot, "
                                                     "turn);",
  "case BENCH_FEEDBACK_SHUFFLED: return shown_own(b, slot, turn);", "bench/test_bench")
m("recovery counts first passes", "bench/bench_sum.c", "for (int k = 1; k < b->o.turns; k++)\n        later",
  "for (int k = 0; k < b->o.turns; k++)\n        later", "bench/test_bench")
m("an untrusted speedup is claimed", "bench/speed.c", "return !s->timed ? NAN : ", "return ", "bench/test_suites")
m("one-sided sign test", "bench/stats.c", "return fmin(1, 2 * p);", "return fmin(1, p);", "bench/test_stats")
m("ties are ranked apart", "bench/stats.c", "fabs(d[j]) == fabs(d[i])", "j == i", "bench/test_stats")
m("a narrow interval", "bench/stats.c", "BOOTSTRAP_ROUNDS, 0.025)", "BOOTSTRAP_ROUNDS, 0.25)", "bench/test_stats")

# ---- the record, and what is said of it ----

m("a timeout before cheating", "eval/verdict/record.c",
  [("\"cheating\", \"unsupported\"", "\"timeout\", \"unsupported\""),
   ("\"timeout\", \"runtime_error\"", "\"cheating\", \"runtime_error\"")], "eval/test_pure")
m("the last reason wins", "eval/verdict/record.c", "if (!best || record_rank_of(r) < record_rank_of(best))", "if (1)",
  "eval/test_pure")
m("trials told the wrong way round", "eval/verdict/feedback.c",
  "buf_addf(b, \"Wrong result: %lld of %lld trials pass.\\n\", (long long)json_i64(c, \"passed\", 0),",
  "buf_addf(b, \"Wrong result: %lld of %lld trials pass.\\n\", (long long)json_i64(c, \"trials\", 0),",
  "eval/test_pure")
m("expected and got exchanged", "eval/verdict/feedback.c",
  [("feedback_add_num(b, json_object_get(s, \"expected\"));", "feedback_add_num(b, json_object_get(s, \"got\"));"),
   (", got \");\n    feedback_add_num(b, json_object_get(s, \"got\"));",
    ", got \");\n    feedback_add_num(b, json_object_get(s, \"expected\"));")],
  "eval/test_pure")
m("the pattern is not told", "eval/verdict/feedback.c", "*pattern ? \": \" : \"\", pattern);", "\"\", \"\");",
  "eval/test_pure")
m("the operator is not named", "eval/verdict/feedback.c", "forward runs %s through PyTorch (%lld calls)\", op,",
  "forward runs %s through PyTorch (%lld calls)\", \"it\",", "eval/test_pure")
m("nan is not explained", "eval/verdict/feedback.c", "if (json_i64(w, \"nan\", 0) > 0 && !strstr(pattern, \"never "
                                                     "written\"))",
  "if (0)", "eval/test_pure")

m("order of difficulty ignored", "train/mixture.c", "if (easy_first && !p->begun)", "if (0)", "train/test_mixture")
# ---- the engine ----

m("a torn last line stays", "base/json.c", "    if (rc == 0 && whole < b.n) {", "    if (0) {", "base/test_base")
m("metrics stay torn", "train/train_metrics.c", "jsonl_continue(path, train_metrics_keep_line, &k, e)",
  "file_exists(path) ? jsonl_each(path, train_metrics_keep_line, &k, e) : 0", "train/test_killed")
m("a whole last line is cut", "base/json.c", "        if (last)\n            rc = file_append",
  "        if (0)\n            rc = file_append", "base/test_base")
m("unknown difficulty counts as easy", "train/data.c", "json_i64(rec, \"difficulty\", DIFFICULTY_UNKNOWN)",
  "json_i64(rec, \"difficulty\", 0)", "train/test_shards")
m("what has no difficulty is sorted", "train/mixture.c",
  [("            if (v < 0)\n                continue;\n", "            v = v < 0 ? 0 : v;\n"),
   ("        if (d->ex[p->ids[i]].difficulty >= 0)\n", "")], "train/test_mixture")
m("what has no difficulty is repeated", "train/mixture.c", "if (d->ex[p->ids[i]].difficulty >= 0)\n", "if (1)\n",
  "train/test_mixture")
m("no pointer to the checkpoint", "train/checkpoint.c", "        rc = file_write(latest, name, strlen(name), e);",
  "        rc = step > 2 ? 0 : file_write(latest, name, strlen(name), e);", "train/test_killed")
m("padding is drawn", "nn/choose.c", "int ids = rule->ids ? rule->ids : V, kept = 0;", "int ids = V, kept = 0;",
  "nn/test_model_sampler")
m("content is not trimmed", "nn/chat.c", "c->trims = c->known &&", "c->trims = false &&", "nn/test_chat")
m("thinking of earlier turns stays", "nn/chat.c", "answer.p, answer.n, TOK_MARKUP, e);", "content, n, TOK_MARKUP, e);",
  "nn/test_chat")
m("former shards stay", "nn/model_save.c", "        if (!keep)\n", "        if (0)\n", "nn/test_model")
m("lines in the threads' order", "train/data.c", "a->tok[omp_get_thread_num()], &lines[i]",
  "a->tok[omp_get_thread_num()], &lines[n - 1 - i]",
  "train/test_shards")

# ---- synthesis ----

m("failing programs are kept", "synth/corpus.c", "        if (!corpus_passed(p->s[k].verdict)) {", "        if (0) {",
  "synth/test_synth")
m("undetected bugs become repairs", "synth/corpus.c", "    if (!corpus_is_detected(x->mutant_verdict)) {\n",
  "    if (0) {\n",
  "synth/test_synth")
m("repairs of cheating and timeouts", "synth/corpus.c", "!strcmp(category, \"correctness_error\"));",
  "!strcmp(category, \"correctness_error\") || *category);", "synth/test_synth")
m("a repair without its feedback", "synth/training_record.c", "prompt_turn(m, v->style, shown, feedback,",
  "prompt_turn(m, v->style, shown, \"x\",", "synth/test_synth")
m("held-out graphs in training", "synth/problem.c", "SIDE_HELD)\n        return !graph && !attribute;",
  "SIDE_HELD)\n        return !attribute;", "synth/test_synth")
m("held-out sizes in training", "synth/problem.c", "SIDE_HELD)\n        return !graph && !attribute;",
  "SIDE_HELD)\n        return !graph;", "synth/test_synth")
m("held-out operators in training", "synth/problem.c",
  [("(its == OP_TAUGHT || its == c)", "1"), ("problem_class_of_graph(s, g) != w->class", "0")], "synth/test_synth")
m("known operators count as taught", "synth/problem.c", "return o->all_taught && c == OP_KNOWN", "return c == OP_KNOWN",
  "synth/test_synth")
m("prompts of two operators alone", "synth/problem.c", "w->side == SIDE_PROMPT ? problem_draw_nodes(s, r)",
  "w->side == SIDE_PROMPT ? 2", "synth/test_synth")
m("half of the prompts are known", "synth/problem.c", "share = s->o->known_share;", "share = 0.5;",
  "synth/test_synth")
m("prompts have no more chains", "synth/problem.c", "SIDE_PROMPT ? SHARE_CHAINS_PROMPTS",
  "SIDE_PROMPT ? 0.4", "synth/test_synth")
m("prompts of taught operators alone", "synth/problem.c", "        w.class = OP_KNOWN;\n", "        ;\n",
  "synth/test_synth")
m("learned graphs that prompts have", "synth/problem.c", "(s->prompted, hash) : graph)", "(s->prompted, hash) : 1)",
  "synth/test_synth")
m("questions of reductions without shapes", "synth/knowledge.c", "return k->class != NEST_MAP || k->n_dims != 1;",
  "return k->n_dims > 9;", "synth/test_synth")
m("strong families weigh more", "synth/diagnose.c", "return 1 - (t->passed + 1.0) / (t->samples + 2.0);",
  "return (t->passed + 1.0) / (t->samples + 2.0);", "synth/test_diagnose")
m("second turns are rated", "synth/diagnose.c", "json_i64(line, \"turn\", 1) != 1", "0", "synth/test_diagnose")
m("prompts in any order", "synth/diagnose.c", "log(u > 0 ? u : 0x1p-53) / w}", "log(u > 0 ? u : 0x1p-53)}",
  "synth/test_diagnose")
m("weights are not drawn by", "synth/dag_draw.c", "json_f64(weights, op->family, 1)", "1", "synth/test_diagnose")
m("a name that is taken is given", "synth/wording.c", "w->used[i] ? *name : to", "to", "synth/test_wording")
m("functions of one element read others", "synth/knowledge.c", "ax_is_id(x->kid[1], \"i\")", "true",
  "synth/test_wording")
m("questions of unseen operators", "synth/knowledge.c", "s->table[OP_KNOWN]", "s->table[OP_UNSEEN]",
  "synth/test_wording")
m("every answer costs the same", "synth/entropy.c", "p = (had + c->distinct * p) / (c->n + c->distinct);", "p = 0.5;",
  "synth/test_wording")
m("common graphs fill training", "synth/problem.c", "draw_below(r, KNOWN_ONE_IN))", "0)", "synth/test_synth")
m("a question twice", "synth/knowledge.c",
  " &&\n            graph_set_add(s->asked, hash64(q.ask.p, q.ask.n, 1))", "", "synth/test_synth")
m("plain programs are tuned", "synth/problem.c",
  "if (style->terse)\n            fuse_untuned(k);", ";", "synth/test_synth")
m("questions without their numbers", "synth/knowledge.c", "strchr(init, '$') || ", "", "synth/test_synth")
m("parents of mutants are answered", "synth/corpus.c", "        } else if (p->side == SIDE_PARENT) {",
  "        } else if (p->side == SIDE_PARENT && (corpus_add_generate(c, p, k, F_TRAIN), 1)) {", "synth/test_synth")
m("prompts that training answers", "synth/problem.c", "if (graph_set_has(s->texts, dag_hash(g, true)))", "if (0)",
  "synth/test_synth")
m("the faulty line is not named", "task/repair_text.c", "    repair_text_name_place(&out, &a, &b, words);\n",
  "    (void)repair_text_name_place;\n",
  "synth/test_synth")
m("the judge's words choose no line", "task/repair_text.c", "repair_text_heard(said ? said",
  "repair_text_heard(0 ? said", "synth/test_synth")
m("one unfit task ends the run", "synth/verify.c", "return verify_is_infra(verdict) && !strcmp(json_str(verdict, "
                                                   "\"at_fault\"",
  "return 0 && !strcmp(json_str(verdict, \"at_fault\"", "synth/test_verify")
m("a task is unfit at its first word", "synth/verify.c", "(v->again && verify_is_unfit(verdict))",
  "verify_is_unfit(verdict)",
  "synth/test_verify")
m("a corpus of unfit tasks", "synth/verify.c", "if (n > v->n / 2)", "if (0)", "synth/test_verify")
m("lines around the faulty one count", "task/repair_text.c", "if (!marked ||", "if (1 ||", "synth/test_synth")
m("a compiler's guess is passed on", "eval/build/build_log.c", "n = build_log_without_guess(message, n);",
  "(void)build_log_without_guess;",
  "litetorch/test_build")
m("trivial tasks are kept", "synth/triviality.c", ": input    ? \"an input passes\"", ": 0    ? \"\"",
  "synth/test_synth")
m("operators without effect are kept", "synth/triviality.c", "        any |= idle[i];", "        any |= 0;",
  "synth/test_synth")
m("a launch costs nothing", "synth/cost.c", "c.us = c.kernels * COST_LAUNCH_US +", "c.us =", "synth/test_parts")
m("tiles are not reused", "synth/cost.c", "{1u << NEST_CONTRACT, \"tile\", '1', '1', 'B', 'B'}",
  "{1u << NEST_CONTRACT, \"tile\", '1', '1', '1', '1'}", "synth/test_parts")
m("lanes share nothing", "synth/cost.c", "(cost_depth_of(n) + lanes - 1) / lanes", "cost_depth_of(n)",
  "synth/test_parts")
m("the slow one is the answer", "synth/rewrite.c", "if (found && theirs > mine)", "if (found && theirs < mine)",
  "synth/test_parts")
m("every bug is told", "synth/triviality.c", "dead = triviality_tells(g, l->v[r][last], z, n);", "dead = true;",
  "synth/test_parts")
m("no bug is told", "synth/triviality.c", "dead = triviality_tells(g, l->v[r][last], z, n);", "dead = false;",
  "synth/test_parts")
m("inputs outside of the domain", "synth/triviality.c", "d.lo < d.hi            ?", "0 ?", "synth/test_parts")
m("float4 of halves", "synth/emit.c", "k->in[load->i].t.dtype == DT_F32;", "true;", "synth/test_parts")
m("columns without columns", "synth/sched/contract.c", "contract_along(k, k->b, 2) &&", "true &&", "synth/test_parts")
m("memory is compute", "synth/ncu.c", "return memory >= compute ?", "return memory < compute ?", "synth/test_parts")
m("a bound at any load", "synth/ncu.c", "if (memory < NCU_BUSY && compute < NCU_BUSY)", "if (0)", "synth/test_parts")
m("units are not looked at", "synth/ncu.c", "(!unit || !strcmp(json_str(m, \"unit\", \"\"), unit))", "true",
  "synth/test_parts")
m("cut answers are judged", "synth/teach.c", "if (json_flag(q->answer, \"cut\", false)) {", "if (0) {",
  "synth/test_parts")
m("a timeout is a review", "synth/teach.c", "if (!strcmp(category, faults[i]))", "if (*category)", "synth/test_parts")
m("answers of other questions", "synth/teach.c", "sha256_adds(&h, text), sha256_adds(&h, prompt);",
  "sha256_adds(&h, text);", "synth/test_parts")
m("always the emulator", "synth/verify.c", "o->backend ? o->backend : \"sim\"", "\"sim\"", "synth/test_verify")
m("infra stays infra", "synth/verify.c", "return !verify_is_infra(verdict) ||", "return 1 ||",
  "synth/test_verify")
m("what depends on a bug is not computed again", "synth/dag.c",
  "p->node == node || dag_reads_changed(&g->node[p->node], changed)", "p->node == node", "synth/test_parts")
m("a name means what it meant first", "synth/ir/nest.c",
  [("#define SEEN_NAMES 64", "#define SEEN_NAMES 1"),
   ("    if (known->name != s)\n        *known = (struct seen){s, nest_find_dim(v->k, s)};",
    "    if (!known->name)\n        *known = (struct seen){s, nest_find_dim(v->k, s)};")], "synth/test_parts")

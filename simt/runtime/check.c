/* check.c - placeholder until the access checker is complete: instrumented code links and runs unchecked. */
#include "runtime.h"
int check_wanted = 1;
bool check_build, check_now;
void simt_set_check(int on) { check_wanted = on; }
void check_launch_start(void) {}
void check_launch_end(void) {}
void check_block_start(void) {}
void check_barrier(void) {}
void check_suspend(void) {}
void check_atomic(const void *p, size_t bytes, const void *pc, bool r) { (void)p, (void)bytes, (void)pc, (void)r; }
void check_fence(void) {}
void shadow_free(struct range *r) { (void)r; }

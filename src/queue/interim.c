/* interim.c - no queue yet: --worker says so. Remove when queue.c lands. */
#include "queue/queue.h"

static int none(struct err *e) { return err_set(e, ERR_ENV, "the job queue is not built in yet"); }

int queue_open(const char *path, struct queue **ret, struct err *e) { (void)path, (void)ret; return none(e); }
void queue_close(struct queue *q) { (void)q; }
int queue_claim(struct queue *q, const char *w, double l, double s, struct queue_job *r, struct err *e)
{ (void)q, (void)w, (void)l, (void)s, (void)r; return none(e); }
void queue_job_free(struct queue_job *j) { (void)j; }
int queue_heartbeat(struct queue *q, const struct queue_job *j, double l, struct err *e) { (void)q, (void)j, (void)l; return none(e); }
int queue_finish(struct queue *q, int64_t id, const char *r, struct err *e) { (void)q, (void)id, (void)r; return none(e); }
int queue_fail(struct queue *q, const struct queue_job *j, const char *r, int m, struct err *e)
{ (void)q, (void)j, (void)r, (void)m; return none(e); }

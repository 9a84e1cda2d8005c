/* interim.c - no queue and no verdict service yet: callers get an error that says so. Remove when queue.c lands. */
#include "queue/queue.h"
#include "queue/verdict.h"

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

int verdict_service_start(const struct verdict_config *c, struct verdict_service **ret, struct err *e)
{ (void)c, (void)ret; return none(e); }
void verdict_service_stop(struct verdict_service *s) { (void)s; }
int verdict_batch_submit(struct verdict_service *s, const struct verdict_request *r, int n, struct verdict_batch **ret, struct err *e)
{ (void)s, (void)r, (void)n, (void)ret; return none(e); }
int verdict_batch_wait(struct verdict_service *s, struct verdict_batch *b, void (*f)(int, int, void *), void *ctx, json_t **ret,
                       struct err *e)
{ (void)s, (void)b, (void)f, (void)ctx, (void)ret; return none(e); }
int verdict_batch_done(struct verdict_service *s, struct verdict_batch *b) { (void)s, (void)b; return 0; }
void verdict_batch_cancel(struct verdict_service *s, struct verdict_batch *b) { (void)s, (void)b; }
int verdict_many(struct verdict_service *s, const struct verdict_request *r, int n, json_t **ret, struct err *e)
{ (void)s, (void)r, (void)n, (void)ret; return none(e); }

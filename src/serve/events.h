/* events.h - what happened lately, for event streams (text/event-stream): a ring of messages and who listens. */
#ifndef MC_SERVE_EVENTS_H
#define MC_SERVE_EVENTS_H

#include <jansson.h>

#include "serve/http.h"

struct events;

struct events *events_new(void);
void events_free(struct events *v);

void events_say(struct events *v, const char *kind, const json_t *data); /* to all who listen */
/* Answers the call with the stream: what is said from now on; 'data' objects of the given kind, a line each. */
void events_stream(struct events *v, struct http_call *c);

#endif

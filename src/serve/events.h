/* events.h - what happened lately, for event streams (text/event-stream): a ring of messages and who listens. */
#ifndef MC_SERVE_EVENTS_H
#define MC_SERVE_EVENTS_H

#include <jansson.h>

#include "serve/http.h"

struct events;

struct events *events_new(void);
void events_free(struct events *v);

/* To all who listen; owner: to listeners of this name and to those of none. NULL: to everybody. */
void events_say(struct events *v, const char *owner, const char *kind, const json_t *data);
/* Answers the call with the stream: what is said from now on; 'data' objects of the given kind, a line each.
 * owner: whose messages it hears, borrowed; NULL: all. */
void events_stream(struct events *v, const char *owner, struct http_call *c);

#endif

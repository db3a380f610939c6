/* SPDX-License-Identifier: MIT */
/* conformance.h - shared by the files of the plugin: the runs of its tools, one file per kind
 * of fixture. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <notegate/plugin.h>

#define CONFORMANCE_WATCHED_COLLECTION "conformance_watched"

/* ---- conformance_clock.c: calls that wait without holding a worker ---- */

struct conformance_clock;
struct conformance_wait;

/* Called on the clock's thread when the time is over: returns like run(), or
 * conformance_wait_more(). Must be quick. */
typedef int conformance_step_fn(struct ng_call *call, struct conformance_wait *wait);

/* In memory of the call, for as long as it waits. */
struct conformance_wait {
    struct ng_call *call;
    struct ng_deferred *deferred;
    conformance_step_fn *step;
    int64_t due_ms; /* of the clock */
    int round;      /* the step's own */
    struct conformance_wait *next;
};

int conformance_clock_start(struct ng_call *call, struct conformance_clock **ret_clock);
/* No call waits any more. NULL is a no-op. */
void conformance_clock_stop(struct conformance_clock *clock);
/* Runs `step` in `ms`. Return what it returns. A cancelled call ends at once, without the step.
 */
int conformance_wait(struct conformance_clock *clock, struct ng_call *call, int64_t ms,
                     conformance_step_fn *step);
/* In a step: once more in `ms`. Return what it returns. */
int conformance_wait_more(struct conformance_wait *wait, int64_t ms);

/* ---- conformance_content.c: answers of every kind, notifications ---- */

extern const struct ng_str conformance_png;
/* The same in base64. */
extern const char conformance_png_base64[];

int conformance_simple_text(void *self, struct ng_call *call, struct ng_str args);
int conformance_image(void *self, struct ng_call *call, struct ng_str args);
int conformance_audio(void *self, struct ng_call *call, struct ng_str args);
int conformance_embedded_resource(void *self, struct ng_call *call, struct ng_str args);
int conformance_multiple_types(void *self, struct ng_call *call, struct ng_str args);
int conformance_error(void *self, struct ng_call *call, struct ng_str args);
int conformance_json_schema(void *self, struct ng_call *call, struct ng_str args);
int conformance_custom_header(void *self, struct ng_call *call, struct ng_str args);
int conformance_logging(void *self, struct ng_call *call, struct ng_str args);
int conformance_log_once(void *self, struct ng_call *call, struct ng_str args);
int conformance_progress(void *self, struct ng_call *call, struct ng_str args);
int conformance_reconnection(void *self, struct ng_call *call, struct ng_str args);
int conformance_tool_change(void *self, struct ng_call *call, struct ng_str args);
int conformance_prompt_change(void *self, struct ng_call *call, struct ng_str args);

/* ---- conformance_ask.c: questions to the user and to the client's model ---- */

/* The content of what the user filled in, an object. NG_EINPUT: asked; NG_EFAILED: the user did
 * not accept. */
int conformance_ask_form(struct ng_call *call, const char *key, const char *request,
                         const struct ng_value **ret_content);

int conformance_sampling(void *self, struct ng_call *call, struct ng_str args);
int conformance_elicitation(void *self, struct ng_call *call, struct ng_str args);
int conformance_defaults(void *self, struct ng_call *call, struct ng_str args);
int conformance_enums(void *self, struct ng_call *call, struct ng_str args);
int conformance_missing_capability(void *self, struct ng_call *call, struct ng_str args);
int conformance_streaming_elicitation(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_sampling(void *self, struct ng_call *call, struct ng_str args);

/* ---- conformance_input.c: one question and several, with state between the rounds ---- */

int conformance_input_elicitation(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_roots(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_state(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_multiple(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_rounds(void *self, struct ng_call *call, struct ng_str args);
int conformance_input_capabilities(void *self, struct ng_call *call, struct ng_str args);

/* ---- conformance_task.c: what runs long ---- */

int conformance_greet(void *self, struct ng_call *call, struct ng_str args);
int conformance_slow_compute(void *self, struct ng_call *call, struct ng_str args);
int conformance_failing_job(void *self, struct ng_call *call, struct ng_str args);
int conformance_protocol_error(void *self, struct ng_call *call, struct ng_str args);
int conformance_confirm_delete(void *self, struct ng_call *call, struct ng_str args);
int conformance_multi_input(void *self, struct ng_call *call, struct ng_str args);
int conformance_task_after_input(void *self, struct ng_call *call, struct ng_str args);

/* ---- conformance_resource.c ---- */

#define CONFORMANCE_RESOURCES 4
extern const struct ng_resources conformance_resources[CONFORMANCE_RESOURCES];
int conformance_update_watched(void *self, struct ng_call *call, struct ng_str args);

/* ---- conformance_prompt.c ---- */

#define CONFORMANCE_PROMPTS 5
extern const struct ng_prompt conformance_prompts[CONFORMANCE_PROMPTS];

#endif

/* SPDX-License-Identifier: MIT */
/* conformance_content.c - tools that answer with every kind of content, and tools that tell the
 * client something while they run. */
#include "conformance.h"

/* Between two notifications; the suite wants them apart. */
#define CONTENT_STEP_MS 50
/* After its client was let go, test_reconnection works for so long; the client is told to be
 * back sooner. */
#define CONTENT_AWAY_MS 300
#define CONTENT_RETRY_MS 100
#define CONTENT_LOGGER "conformance"

/* One red pixel. */
static const unsigned char content_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
    0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xf7, 0x03, 0x41,
    0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

const struct ng_str conformance_png = {(const char *)content_png, sizeof(content_png)};

const char conformance_png_base64[] =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQm"
    "CC";

/* A millisecond of sound: 8 bits, one channel, 8 kHz. */
static const unsigned char content_wav[] = {
    0x52, 0x49, 0x46, 0x46, 0x2c, 0x00, 0x00, 0x00, 0x57, 0x41, 0x56, 0x45, 0x66,
    0x6d, 0x74, 0x20, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x40, 0x1f,
    0x00, 0x00, 0x40, 0x1f, 0x00, 0x00, 0x01, 0x00, 0x08, 0x00, 0x64, 0x61, 0x74,
    0x61, 0x08, 0x00, 0x00, 0x00, 0x80, 0xa0, 0x80, 0x60, 0x80, 0xa0, 0x80, 0x60,
};

static const struct ng_str no_text = {NULL, 0};

int conformance_simple_text(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_reply(call, ng_str_of("This is a simple text response for testing."));
}

int conformance_image(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return call->host->reply_media(call, "image", "image/png", conformance_png);
}

int conformance_audio(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str bytes = {(const char *)content_wav, sizeof(content_wav)};
    (void)self;
    (void)args;
    return call->host->reply_media(call, "audio", "audio/wav", bytes);
}

int conformance_embedded_resource(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return call->host->reply_resource(call, ng_str_of("test://embedded-resource"), "text/plain",
                                      ng_str_of("This is an embedded resource content."), true);
}

int conformance_multiple_types(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    int rc = ng_reply(call, ng_str_of("Multiple content types test:"));
    if (rc == NG_OK) {
        rc = call->host->reply_media(call, "image", "image/png", conformance_png);
    }
    if (rc == NG_OK) {
        rc = call->host->reply_resource(call, ng_str_of("test://mixed-content-resource"),
                                        "application/json",
                                        ng_str_of("{\"test\":\"data\",\"value\":123}"), true);
    }
    return rc;
}

int conformance_error(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_fail(call, NG_EFAILED, "This tool intentionally returns an error for testing");
}

int conformance_json_schema(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    return ng_reply(
        call, call->host->format(call, "Valid by its schema: %.*s", (int)args.len, args.data));
}

int conformance_custom_header(void *self, struct ng_call *call, struct ng_str args)
{
    struct ng_str region = ng_arg_text(call, "region");
    (void)self;
    (void)args;
    return ng_reply(call, call->host->format(call, "Region: %.*s", (int)region.len,
                                             region.data != NULL ? region.data : ""));
}

/* ---- notifications ---- */

static void content_log(struct ng_call *call, const char *json_string)
{
    call->host->notify_log(call, NG_LOG_INFO, CONTENT_LOGGER, ng_str_of(json_string));
}

static int content_logging_step(struct ng_call *call, struct conformance_wait *wait)
{
    if (++wait->round == 1) {
        content_log(call, "\"Tool processing data\"");
        return conformance_wait_more(wait, CONTENT_STEP_MS);
    }
    content_log(call, "\"Tool execution completed\"");
    return ng_reply(call, ng_str_of("Three log messages were sent"));
}

int conformance_logging(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args;
    content_log(call, "\"Tool execution started\"");
    return conformance_wait(self, call, CONTENT_STEP_MS, content_logging_step);
}

int conformance_log_once(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    content_log(call, "\"A message at level info\"");
    return ng_reply(call, ng_str_of("One log message was offered"));
}

static int content_progress_step(struct ng_call *call, struct conformance_wait *wait)
{
    if (++wait->round == 1) {
        call->host->progress(call, 50, 100, no_text);
        return conformance_wait_more(wait, CONTENT_STEP_MS);
    }
    call->host->progress(call, 100, 100, no_text);
    return ng_reply(call, ng_str_of("Progress went from 0 to 100"));
}

int conformance_progress(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args;
    call->host->progress(call, 0, 100, no_text);
    return conformance_wait(self, call, CONTENT_STEP_MS, content_progress_step);
}

static int content_reconnection_step(struct ng_call *call, struct conformance_wait *wait)
{
    (void)wait;
    return ng_reply(call, ng_str_of("The answer came after the stream had been closed"));
}

int conformance_reconnection(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args;
    call->host->detach_client(call, CONTENT_RETRY_MS);
    return conformance_wait(self, call, CONTENT_AWAY_MS, content_reconnection_step);
}

int conformance_tool_change(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    call->host->lists_changed(call->host, NG_LIST_TOOLS);
    return ng_reply(call, ng_str_of("A change of the list of tools was announced"));
}

int conformance_prompt_change(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    call->host->lists_changed(call->host, NG_LIST_PROMPTS);
    return ng_reply(call, ng_str_of("A change of the list of prompts was announced"));
}

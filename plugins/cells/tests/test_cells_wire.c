/* SPDX-License-Identifier: MIT */
/* test_cells_wire.c - messages of kernels: frames, signatures, dropped messages. */
#include "harness.h"
#include "kernel/wire.h"

#include <string.h>

#define FRAMES 6

/* Made with Python: hmac.new(b"0123456789abcdef", header + parent + metadata + content,
 * hashlib.sha256).hexdigest(). */
static const char known[] = "b64d50f9089ffdd435755af12216f1c5599e27068a3f00542a14713d0df11b7c";
static const struct wire_key key = {"0123456789abcdef"};
static const struct wire_key no_key = {""};

static void known_frames(struct ng_str frames[FRAMES])
{
    frames[0] = ng_str_of(WIRE_DELIMITER);
    frames[1] = ng_str_of(known);
    frames[2] = ng_str_of("{\"msg_id\":\"1\",\"msg_type\":\"status\"}");
    frames[3] = ng_str_of("{\"msg_id\":\"abc\"}");
    frames[4] = ng_str_of("{}");
    frames[5] = ng_str_of("{\"execution_state\":\"idle\"}");
}

static void expect(struct ng_str text, const char *word)
{
    assert_int_equal(text.len, strlen(word));
    assert_memory_equal(text.data, word, text.len);
}

static void test_a_known_signature(void **state)
{
    struct ng_str frames[FRAMES + 4];
    struct wire_message message;
    (void)state;
    known_frames(frames);
    assert_true(wire_parse(frames, FRAMES, &key, &message));
    expect(message.type, "status");
    expect(message.parent_id, "abc");
    expect(message.content, "{\"execution_state\":\"idle\"}");
    /* Identities before it, buffers behind it. */
    for (size_t i = 0; i < 3; i++) {
        frames[i] = ng_str_of(i == 1 ? "" : "who");
    }
    known_frames(frames + 3);
    frames[9] = ng_str_of("buffer");
    assert_true(wire_parse(frames, FRAMES + 4, &key, &message));
    expect(message.type, "status");
}

static void test_what_is_dropped(void **state)
{
    struct ng_str frames[FRAMES];
    struct wire_message message;
    char other[] = "b64d50f9089ffdd435755af12216f1c5599e27068a3f00542a14713d0df11b7d";
    (void)state;
    for (size_t count = 0; count < FRAMES; count++) {
        known_frames(frames);
        assert_false(wire_parse(frames, count, &key, &message));
    }
    known_frames(frames);
    frames[1] = ng_str_of(other);
    assert_false(wire_parse(frames, FRAMES, &key, &message));
    frames[1] = ng_str_of("");
    assert_false(wire_parse(frames, FRAMES, &key, &message));
    for (size_t changed = 2; changed < FRAMES; changed++) {
        known_frames(frames);
        frames[changed] = ng_str_of("{\"msg_type\":\"x\"}");
        assert_false(wire_parse(frames, FRAMES, &key, &message));
    }
}

/* Without a key nothing is signed: then what the frames hold decides. */
static void test_frames_that_are_no_message(void **state)
{
    static const char *const bad[] = {"",    "[]",    "null",     "{",
                                      "{}}", "\"x\"", "{\"a\":}", "\xff"};
    struct ng_str frames[FRAMES];
    struct wire_message message;
    (void)state;
    known_frames(frames);
    frames[1] = ng_str_of("");
    assert_true(wire_parse(frames, FRAMES, &no_key, &message));
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        for (size_t at = 2; at < FRAMES; at++) {
            known_frames(frames);
            frames[1] = ng_str_of("");
            frames[at] = ng_str_of(bad[i]);
            /* The metadata are ignored. */
            assert_int_equal(wire_parse(frames, FRAMES, &no_key, &message), at == 4);
        }
    }
    known_frames(frames);
    frames[1] = ng_str_of("");
    frames[2] = ng_str_of("{\"msg_type\":7}");
    assert_false(wire_parse(frames, FRAMES, &no_key, &message));
    known_frames(frames);
    frames[1] = ng_str_of("");
    frames[3] = ng_str_of("{\"msg_id\":null}");
    assert_true(wire_parse(frames, FRAMES, &no_key, &message));
    assert_int_equal(message.parent_id.len, 0);
}

static void test_what_is_made_can_be_read(void **state)
{
    struct wire_out out;
    struct wire_message message;
    char session[WIRE_ID_SIZE];
    (void)state;
    assert_true(wire_id(session));
    assert_int_equal(strlen(session), 32);
    assert_true(wire_make(&out, &key, session, "execute_request",
                          ng_str_of("{\"code\":\"\\u0000\\ud800\"}")));
    struct ng_str frames[FRAMES] = {ng_str_of(WIRE_DELIMITER), ng_str_of(out.signature),
                                    nb_text_str(&out.header),  ng_str_of("{}"),
                                    ng_str_of("{}"),           nb_text_str(&out.content)};
    assert_int_equal(strlen(out.signature), WIRE_SIGNATURE);
    assert_true(wire_parse(frames, FRAMES, &key, &message));
    expect(message.type, "execute_request");
    struct nb_span whole = {0, out.header.len};
    struct ng_str header = nb_text_str(&out.header);
    assert_true(nb_is_word(header, nb_member(header, whole, "session"), session));
    assert_true(nb_is_word(header, nb_member(header, whole, "msg_id"), out.id));
    assert_int_equal(nb_member(header, whole, "date").len,
                     strlen("\"2024-01-01T00:00:00.000Z\""));
    wire_out_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_known_signature),
        cmocka_unit_test(test_what_is_dropped),
        cmocka_unit_test(test_frames_that_are_no_message),
        cmocka_unit_test(test_what_is_made_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

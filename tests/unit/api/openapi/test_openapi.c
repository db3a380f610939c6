/* SPDX-License-Identifier: MIT */
/* test_openapi.c - the table of routes and the paths of /openapi.json are the same, but for
 * those of tools that are not loaded. */
#include <string.h>

#include "api/definitions/tool_routes.h"
#include "api/openapi/openapi.h"
#include "api/serve/routes.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/json/json.h"
#include "harness.h"

#define DOCUMENT_MAX ((size_t)16 * 1024 * 1024)
#define DOCUMENT_DEPTH 64

static const struct {
    unsigned bit;
    const char *name;
} methods[] = {{HTTP_GET, "get"}, {HTTP_POST, "post"}, {HTTP_DELETE, "delete"}};

/* "/v1/keys/{id}" and "/v1/keys/{name}" are one path. */
static bool same_path(struct ng_str a, struct ng_str b)
{
    const char *brace_a = memchr(a.data, '{', a.len);
    const char *brace_b = memchr(b.data, '{', b.len);
    a.len = brace_a == NULL ? a.len : (size_t)(brace_a - a.data);
    b.len = brace_b == NULL ? b.len : (size_t)(brace_b - b.data);
    return (brace_a == NULL) == (brace_b == NULL) && str_equal(a, b);
}

static unsigned methods_of_routes(struct ng_str path)
{
    unsigned found = 0;
    const struct http_routes *routes = routes_all();
    for (size_t i = 0; i < routes->count; i++) {
        found |=
            same_path(ng_str_of(routes->items[i].path), path) ? routes->items[i].methods : 0;
    }
    return found;
}

static const struct ng_value *path_of(const struct ng_value *paths, const char *route)
{
    for (const struct ng_value *one = paths->first; one != NULL; one = one->next) {
        if (same_path(one->key, ng_str_of(route))) {
            return one;
        }
    }
    fail_msg("%s is not in /openapi.json", route);
    return NULL;
}

/* `security` of its own is empty where the route asks for no key. */
static void check_security(const struct route *route, const struct ng_value *operation)
{
    const struct ng_value *security = json_get(operation, "security");
    if ((route->flags & ROUTE_OPEN) != 0) {
        assert_non_null(security);
        assert_null(security->first);
    }
}

static void check_routes(const struct ng_value *paths)
{
    const struct http_routes *routes = routes_all();
    for (size_t i = 0; i < routes->count; i++) {
        if (tool_route_find(ng_str_of(routes->items[i].path)) != NULL) {
            continue;
        }
        const struct ng_value *path = path_of(paths, routes->items[i].path);
        for (size_t m = 0; m < NG_COUNT(methods); m++) {
            const struct ng_value *operation = json_get(path, methods[m].name);
            if ((routes->items[i].methods & methods[m].bit) == 0) {
                continue;
            }
            if (operation == NULL) {
                fail_msg("%s %s is not in /openapi.json", methods[m].name,
                         routes->items[i].path);
            }
            check_security(&routes->items[i], operation);
        }
    }
}

/* Its own path is one of "/v1/tools/{name}". */
static bool is_tool(struct ng_str path)
{
    struct ng_str tools = ng_str_of("/v1/tools/");
    return path.len > tools.len && memcmp(path.data, tools.data, tools.len) == 0 &&
           memchr(path.data, '{', path.len) == NULL;
}

static void check_paths(const struct ng_value *paths)
{
    for (const struct ng_value *path = paths->first; path != NULL; path = path->next) {
        bool tool = is_tool(path->key);
        unsigned known = methods_of_routes(tool ? ng_str_of("/v1/tools/{name}") : path->key);
        for (size_t m = 0; m < NG_COUNT(methods); m++) {
            bool documented = json_get(path, methods[m].name) != NULL;
            if (documented != ((known & methods[m].bit) != 0)) {
                fail_msg("%s %.*s is in /openapi.json and no route", methods[m].name,
                         (int)path->key.len, path->key.data);
            }
        }
    }
}

static void test_every_route_is_documented(void **state)
{
    struct harness harness;
    struct buf text;
    struct arena arena;
    struct json_error error;
    const struct ng_value *document = NULL;
    (void)state;
    harness_open(&harness, NULL);
    buf_init(&text, DOCUMENT_MAX);
    assert_int_equal(openapi_print(harness.gateway, NULL, true, ".", &text), NG_OK);
    arena_init(&arena, 0);
    assert_int_equal(json_parse(&arena, buf_str(&text), DOCUMENT_DEPTH, &document, &error),
                     NG_OK);
    const struct ng_value *paths = json_get(document, "paths");
    assert_non_null(paths);
    check_routes(paths);
    check_paths(paths);
    arena_done(&arena);
    buf_done(&text);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

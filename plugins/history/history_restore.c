/* SPDX-License-Identifier: MIT */
/* history_restore.c - history_restore: a document as it was at a point, as a new revision. */
#include "core/base/str.h"
#include "history.h"

static int restored(struct ng_call *call, uint64_t revision, uint64_t added, uint64_t removed,
                    void *user)
{
    const uint64_t *from = user;
    struct ng_writer *writer = call->host->reply_json(call);
    json_object(writer);
    json_member_int(writer, "revision", (int64_t)revision);
    json_member_int(writer, "restored_from", (int64_t)*from);
    json_member_int(writer, "added", (int64_t)added);
    json_member_int(writer, "removed", (int64_t)removed);
    json_end(writer);
    return NG_OK;
}

/* A point at which the document was not there is no content to restore. */
static int at_point(struct ng_call *call, const struct history_target *target,
                    struct history_version *ret)
{
    int rc = history_at(call, target, "at", ng_str_of("now"), ret);
    if (rc != NG_ENOTFOUND || ret->gone == HISTORY_THERE) {
        return rc;
    }
    return ng_fail(call, NG_EINVAL,
                   "`at`: the document %s at this point, so there is nothing to restore; "
                   "history_log tells when it was there",
                   ret->gone == HISTORY_DELETED ? "was deleted" : "did not exist yet");
}

int history_restore_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct history_target target;
    struct history_version version = {0};
    uint64_t *from = ng_alloc(call, sizeof(*from));
    (void)self;
    (void)args;
    if (from == NULL) {
        return history_no_memory(call);
    }
    int rc = history_target(call, &target);
    if (rc == NG_OK) {
        rc = at_point(call, &target, &version);
    }
    if (rc != NG_OK) {
        return rc;
    }
    *from = version.revision;
    const struct ng_restore restore = {
        .size = sizeof(restore),
        .key = target.key,
        .revision = version.revision,
        .has_expected = ng_has_arg(call, "expectedRevision"),
        .expected_revision = (uint64_t)ng_arg_int(call, "expectedRevision", 0),
        .replied = restored,
        .user = from,
    };
    return call->host->restore(call, &restore);
}

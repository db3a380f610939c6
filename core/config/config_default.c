/* SPDX-License-Identifier: MIT */
/* config_default.c - defaults that depend on the machine: the data directory, its `files`, the
 * number of workers, the form of the log. */
#include <pwd.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_key.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

/* The data folder of a user, below the home folder, and that of the system. */
#define CONFIG_HOME_DATA ".local/share"
#define CONFIG_MACHINE_DATA "/var/lib/notegate"
#define CONFIG_WORKERS_PER_CORE 4
#define CONFIG_CORES_MAX 256

/* Are we the user that root's gateway becomes? */
static bool config_is_user(struct config *config)
{
    struct ng_str name = config_text(config, "user");
    struct passwd entry;
    struct passwd *found = NULL;
    char *text = NULL;
    if (name.len != 0) {
        text = arena_alloc(&config->arena, CONFIG_PASSWD_MAX);
    }
    return text != NULL &&
           getpwnam_r(name.data, &entry, text, CONFIG_PASSWD_MAX, &found) == 0 &&
           found != NULL && found->pw_uid == geteuid();
}

/*
 * Root's commands, the service and the commands of the service's user meet in one store, also
 * where the configuration does not name it: the service's user is the one that the machine's
 * data belong to.
 */
static bool config_is_machine(void)
{
    struct stat info;
    return geteuid() == 0 || (stat(CONFIG_MACHINE_DATA, &info) == 0 && S_ISDIR(info.st_mode) &&
                              info.st_uid == geteuid());
}

static const char *config_default_data_dir(struct config *config)
{
    /* A gateway that becomes a user keeps root's place, also when that user asks. */
    if (config_is_machine() || config_is_user(config)) {
        return CONFIG_MACHINE_DATA;
    }
    struct ng_str base = config_source_env(&config->sources, ng_str_of("XDG_DATA_HOME"));
    if (base.len > 0 && base.data[0] == '/') {
        return arena_printf(&config->arena, "%s/notegate", base.data).data;
    }
    struct ng_str home = config_source_home(&config->sources);
    if (home.len == 0) {
        return NULL;
    }
    return arena_printf(&config->arena, "%s/" CONFIG_HOME_DATA "/notegate", home.data).data;
}

static const char *config_default_workers(struct config *config)
{
    cpu_set_t cores;
    long count = 1;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        count = CPU_COUNT(&cores);
    }
    if (count < 1) {
        count = 1;
    } else {
        count = i64_min(count, CONFIG_CORES_MAX);
    }
    return arena_printf(&config->arena, "%ld", count * CONFIG_WORKERS_PER_CORE).data;
}

static int config_default_of(struct config *config, const char *name, const char *text,
                             struct buf *error)
{
    struct config_key *key = config_key_find(config, name);
    if (key == NULL || text == NULL) {
        return NG_OK;
    }
    if (key->origin == NULL) {
        return config_key_default(config, key, text, error);
    }
    key->option.fallback = text;
    return NG_OK;
}

/* `files` in the data directory, whatever characters its path has. */
static int config_default_roots(struct config *config, struct buf *error)
{
    struct config_key *key = config_key_find(config, "roots");
    const struct config_key *data_dir = config_key_find(config, "data_dir");
    if (key == NULL || key->origin != NULL || data_dir == NULL || !data_dir->has_value) {
        return NG_OK;
    }
    struct ng_str *item = arena_alloc(&config->arena, sizeof(*item));
    struct ng_str path = arena_printf(&config->arena, "%s/files", data_dir->value.text.data);
    if (item == NULL || path.data == NULL) {
        (void)buf_add_c(error, "no memory is left for the configuration");
        return NG_EINTERNAL;
    }
    *item = path;
    key->value = (struct config_value){.text = path, .items = item, .item_count = 1};
    key->has_value = true;
    key->option.fallback = path.data;
    return NG_OK;
}

int config_default_machine(struct config *config, struct buf *error)
{
    const char *format = "json";
    if (isatty(STDERR_FILENO) == 1) {
        format = "text";
    }
    int rc = config_default_of(config, "data_dir", config_default_data_dir(config), error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_default_of(config, "limits.workers", config_default_workers(config), error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = config_default_of(config, "log.format", format, error);
    if (rc != NG_OK) {
        return rc;
    }
    return config_default_roots(config, error);
}

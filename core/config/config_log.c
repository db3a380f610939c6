/* SPDX-License-Identifier: MIT */
/* config_log.c - sets the log's level, format and switches from the configuration. */
#include "config_log.h"

#include "core/base/log.h"
#include "core/base/str.h"

void config_apply_log(const struct config *config)
{
    static const struct {
        const char *name;
        enum ng_level level;
    } levels[] = {
        {"error", NG_LOG_ERROR},
        {"warning", NG_LOG_WARNING},
        {"info", NG_LOG_INFO},
        {"debug", NG_LOG_DEBUG},
    };
    struct ng_str level = config_text(config, "log.level");
    for (size_t i = 0; i < NG_COUNT(levels); i++) {
        if (str_is(level, levels[i].name)) {
            log_set_level(levels[i].level);
        }
    }
    struct ng_str format = config_text(config, "log.format");
    if (str_is(format, "json") || str_is(format, "text")) {
        log_set_format(str_is(format, "json") ? LOG_JSON : LOG_TEXT);
    }
    log_set_switch(LOG_ACCESS, config_bool(config, "log.access"));
    struct ng_str audit = config_text(config, "log.audit");
    log_set_switch(LOG_AUDIT, str_is(audit, "true") || str_is(audit, "reads"));
    log_set_switch(LOG_AUDIT_READS, str_is(audit, "reads"));
}

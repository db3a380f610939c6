/* SPDX-License-Identifier: MIT */
/* rest.h - the REST handlers, each in the file its name begins with. */
#ifndef NOTEGATE_API_REST_H
#define NOTEGATE_API_REST_H

#include "api/http/http_route.h"

int rest_tools_list(struct http_request *request);
int rest_tools_show(struct http_request *request);
int rest_tools_call(struct http_request *request);
void rest_tools_finish(struct http_request *request);
int rest_me(struct http_request *request);
int rest_ops_healthz(struct http_request *request);
int rest_ops_readyz(struct http_request *request);
int rest_ops_metrics(struct http_request *request);
void rest_ops_finish(struct http_request *request);
int rest_admin_config(struct http_request *request);
int rest_admin_reload(struct http_request *request);
void rest_admin_reload_finish(struct http_request *request);
int rest_admin_backup(struct http_request *request);
int rest_admin_verify(struct http_request *request);
void rest_admin_finish(struct http_request *request);
int rest_keys_list(struct http_request *request);
int rest_keys_add(struct http_request *request);
int rest_keys_show(struct http_request *request);
int rest_keys_set(struct http_request *request);
int rest_keys_revoke(struct http_request *request);
void rest_keys_finish(struct http_request *request);
int rest_audit_list(struct http_request *request);
int rest_audit_checkpoint(struct http_request *request);
int rest_audit_tile(struct http_request *request);
int rest_audit_redact(struct http_request *request);
void rest_audit_finish(struct http_request *request);
int rest_history(struct http_request *request);
void rest_history_finish(struct http_request *request);
int rest_events(struct http_request *request);
void rest_events_finish(struct http_request *request);
int docs_page_redirect(struct http_request *request);
int docs_page_html(struct http_request *request);
int docs_page_script(struct http_request *request);
int docs_page_style(struct http_request *request);

#endif

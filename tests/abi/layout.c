/* SPDX-License-Identifier: MIT */
/*
 * layout.c - pins the layout of every struct of the SDK: place and order of each member, size,
 * and the padding (PAD: so many bytes behind that member, which no member may ever take). The
 * script `headers` sees to it that nothing is missing here.
 *
 * Modules compiled long ago must go on working. ABI 1 is frozen: lines are only ever added
 * here, with the headers, in the same commit: of a struct that is read by its size, members
 * behind its SIZE and then its next SIZE.
 */
#include <notegate/backend.h>
#include <notegate/journal.h>
#include <notegate/plugin.h>

/* Numbers hold for 64-bit systems; the order of members holds everywhere. */
#if UINTPTR_MAX == UINT64_MAX
#define AT(type, member, offset)                                                               \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member " has moved")
#define SIZE(type, bytes)                                                                      \
    _Static_assert(sizeof(struct type) >= (bytes), "struct " #type " is smaller than it was")
#define PAD(type, member, bytes)                                                               \
    _Static_assert(sizeof(struct type) >= offsetof(struct type, member) + (bytes),             \
                   "struct " #type " has less padding")
#else
#define AT(type, member, offset)                                                               \
    _Static_assert(offsetof(struct type, member) <= (offset), #type "." #member " has moved")
#define SIZE(type, bytes)                                                                      \
    _Static_assert(sizeof(struct type) <= (bytes), "struct " #type " has another size")
#define PAD(type, member, bytes)                                                               \
    _Static_assert((bytes) < sizeof(void *) * 2, "struct " #type " has other padding")
#endif
#define VALUE(name, number) _Static_assert((name) == (number), #name " has another value")

/* ---- abi.h ---- */

AT(ng_str, data, 0);
AT(ng_str, len, 8);
SIZE(ng_str, 16);

AT(ng_module, abi, 0);
AT(ng_module, kind, 4);
AT(ng_module, struct_size, 8);
AT(ng_module, needs_host, 12);
AT(ng_module, item_sizes, 16);
AT(ng_module, desc, 48);
SIZE(ng_module, 56);

AT(ng_elf_note, name_size, 0);
AT(ng_elf_note, desc_size, 4);
AT(ng_elf_note, type, 8);
AT(ng_elf_note, name, 12);
AT(ng_elf_note, abi, 24);
AT(ng_elf_note, kind, 28);
AT(ng_elf_note, needs_host, 32);
SIZE(ng_elf_note, 36);

/* ---- documents.h ---- */

AT(ng_key, collection, 0);
AT(ng_key, space, 16);
AT(ng_key, id, 32);
SIZE(ng_key, 48);

AT(ng_field, name, 0);
AT(ng_field, use, 8);
AT(ng_field, weight, 16);
SIZE(ng_field, 24);
PAD(ng_field, use, 4);

AT(ng_collection, name, 0);
AT(ng_collection, flags, 8);
AT(ng_collection, fields, 16);
AT(ng_collection, field_count, 24);
AT(ng_collection, field_size, 32);
SIZE(ng_collection, 40);
PAD(ng_collection, flags, 4);
AT(ng_collection, members, 40);
SIZE(ng_collection, 48);
AT(ng_collection, restore, 48);
SIZE(ng_collection, 56);

AT(ng_origin, run_id, 0);
AT(ng_origin, key_id, 16);
AT(ng_origin, request_id, 32);
AT(ng_origin, lines_added, 48);
AT(ng_origin, lines_removed, 56);
AT(ng_origin, has_lines, 64);
SIZE(ng_origin, 72);
PAD(ng_origin, has_lines, 7);

AT(ng_doc, size, 0);
AT(ng_doc, key, 8);
AT(ng_doc, revision, 56);
AT(ng_doc, deleted, 64);
AT(ng_doc, json, 72);
AT(ng_doc, body, 88);
AT(ng_doc, text, 96);
AT(ng_doc, text_size, 112);
AT(ng_doc, seq, 120);
AT(ng_doc, created_seq, 128);
AT(ng_doc, created_ms, 136);
AT(ng_doc, updated_ms, 144);
AT(ng_doc, author, 152);
AT(ng_doc, action, 168);
AT(ng_doc, score, 184);
AT(ng_doc, snippet, 192);
SIZE(ng_doc, 208);
AT(ng_doc, exact, 208);
SIZE(ng_doc, 216);
AT(ng_doc, origin, 216);
AT(ng_doc, tool, 288);
AT(ng_doc, event_data, 304);
SIZE(ng_doc, 320);
AT(ng_doc, text_splice, 320);
SIZE(ng_doc, 328);
PAD(ng_doc, deleted, 7);

AT(ng_term, field, 0);
AT(ng_term, op, 16);
AT(ng_term, value, 24);
AT(ng_term, number, 40);
AT(ng_term, values, 48);
AT(ng_term, value_count, 56);
SIZE(ng_term, 64);
PAD(ng_term, op, 4);

AT(ng_query, size, 0);
AT(ng_query, collection, 8);
AT(ng_query, space, 24);
AT(ng_query, spaces, 40);
AT(ng_query, space_count, 48);
AT(ng_query, terms, 56);
AT(ng_query, term_count, 64);
AT(ng_query, sort, 72);
AT(ng_query, descending, 88);
AT(ng_query, offset, 96);
AT(ng_query, limit, 104);
AT(ng_query, with_text, 108);
AT(ng_query, with_deleted, 109);
AT(ng_query, want_total, 110);
AT(ng_query, moment, 112);
SIZE(ng_query, 120);
PAD(ng_query, descending, 7);
PAD(ng_query, want_total, 1);
AT(ng_query, only_deleted, 120);
SIZE(ng_query, 128);
PAD(ng_query, only_deleted, 7);

AT(ng_search, size, 0);
AT(ng_search, query, 8);
AT(ng_search, text, 16);
AT(ng_search, snippet_chars, 32);
AT(ng_search, at_least, 40);
SIZE(ng_search, 48);
PAD(ng_search, snippet_chars, 4);

AT(ng_range, size, 0);
AT(ng_range, from, 8);
AT(ng_range, to, 16);
AT(ng_range, limit, 24);
AT(ng_range, with_body, 28);
AT(ng_range, ascending, 29);
SIZE(ng_range, 32);
PAD(ng_range, ascending, 2);
AT(ng_range, flags, 32);
SIZE(ng_range, 40);
PAD(ng_range, flags, 4);
VALUE(NG_RANGE_SPLICES, 1);

AT(ng_event, size, 0);
AT(ng_event, seq, 8);
AT(ng_event, time_ms, 16);
AT(ng_event, key, 24);
AT(ng_event, revision, 72);
AT(ng_event, agent, 80);
AT(ng_event, tool, 96);
AT(ng_event, action, 112);
AT(ng_event, data, 128);
SIZE(ng_event, 144);
AT(ng_event, origin, 144);
SIZE(ng_event, 216);
AT(ng_event, gateway, 216);
SIZE(ng_event, 232);

AT(ng_names, items, 0);
AT(ng_names, count, 8);
SIZE(ng_names, 16);

AT(ng_trail, size, 0);
AT(ng_trail, since, 8);
AT(ng_trail, until, 16);
AT(ng_trail, spaces, 24);
AT(ng_trail, collections, 40);
AT(ng_trail, agents, 56);
AT(ng_trail, runs, 72);
AT(ng_trail, tools, 88);
AT(ng_trail, actions, 104);
AT(ng_trail, id, 120);
AT(ng_trail, id_prefix, 136);
SIZE(ng_trail, 144);
PAD(ng_trail, id_prefix, 7);

AT(ng_run, size, 0);
AT(ng_run, run, 8);
AT(ng_run, agent, 24);
AT(ng_run, collection, 40);
AT(ng_run, space, 56);
AT(ng_run, first_seq, 72);
AT(ng_run, last_seq, 80);
AT(ng_run, changes, 88);
SIZE(ng_run, 96);

AT(ng_as_of, size, 0);
AT(ng_as_of, revision, 8);
AT(ng_as_of, kept, 16);
AT(ng_as_of, before, 24);
AT(ng_as_of, after, 32);
SIZE(ng_as_of, 40);
PAD(ng_as_of, kept, 7);

AT(ng_content, size, 0);
AT(ng_content, key, 8);
AT(ng_content, gone, 56);
AT(ng_content, text, 64);
AT(ng_content, members, 80);
AT(ng_content, last, 88);
AT(ng_content, restored_from, 96);
SIZE(ng_content, 104);
PAD(ng_content, gone, 7);

AT(ng_restore, size, 0);
AT(ng_restore, key, 8);
AT(ng_restore, revision, 56);
AT(ng_restore, has_expected, 64);
AT(ng_restore, expected_revision, 72);
AT(ng_restore, replied, 80);
AT(ng_restore, user, 88);
SIZE(ng_restore, 96);
PAD(ng_restore, has_expected, 7);

AT(ng_undo_item, size, 0);
AT(ng_undo_item, key, 8);
AT(ng_undo_item, revisions, 56);
AT(ng_undo_item, revision_count, 64);
AT(ng_undo_item, result, 72);
AT(ng_undo_item, revision, 80);
AT(ng_undo_item, lines_added, 88);
AT(ng_undo_item, lines_removed, 96);
AT(ng_undo_item, conflict, 104);
SIZE(ng_undo_item, 120);
PAD(ng_undo_item, result, 4);

AT(ng_undo_work, size, 0);
AT(ng_undo_work, what, 8);
AT(ng_undo_work, changes, 16);
AT(ng_undo_work, change_count, 24);
AT(ng_undo_work, dry_run, 32);
AT(ng_undo_work, again, 40);
AT(ng_undo_work, item, 56);
AT(ng_undo_work, user, 64);
SIZE(ng_undo_work, 72);
PAD(ng_undo_work, dry_run, 7);

AT(ng_undo_done, size, 0);
AT(ng_undo_done, run, 8);
AT(ng_undo_done, upto, 24);
AT(ng_undo_done, agents, 32);
AT(ng_undo_done, total, 48);
AT(ng_undo_done, undone, 56);
AT(ng_undo_done, unchanged, 64);
AT(ng_undo_done, conflicts, 72);
SIZE(ng_undo_done, 80);

AT(ng_unfinished, size, 0);
AT(ng_unfinished, run, 8);
AT(ng_unfinished, agent, 24);
AT(ng_unfinished, time_ms, 40);
SIZE(ng_unfinished, 48);

/* ---- files.h ---- */

AT(ng_file, size, 0);
AT(ng_file, type, 8);
AT(ng_file, path, 16);
AT(ng_file, real, 32);
AT(ng_file, space, 48);
AT(ng_file, data, 64);
AT(ng_file, revision, 80);
AT(ng_file, bytes, 96);
AT(ng_file, modified_ms, 104);
AT(ng_file, mode, 112);
AT(ng_file, names, 120);
SIZE(ng_file, 128);
PAD(ng_file, type, 4);
PAD(ng_file, mode, 4);

AT(ng_file_edit, size, 0);
AT(ng_file_edit, path, 8);
AT(ng_file_edit, fn, 24);
AT(ng_file_edit, user, 32);
AT(ng_file_edit, expected_revision, 40);
AT(ng_file_edit, create, 56);
AT(ng_file_edit, parents, 57);
AT(ng_file_edit, not_undoable, 58);
AT(ng_file_edit, max_bytes, 64);
AT(ng_file_edit, collection, 72);
AT(ng_file_edit, action, 80);
AT(ng_file_edit, exists_code, 88);
SIZE(ng_file_edit, 96);
PAD(ng_file_edit, not_undoable, 5);
PAD(ng_file_edit, exists_code, 4);

AT(ng_file_entry, size, 0);
AT(ng_file_entry, name, 8);
AT(ng_file_entry, type, 24);
AT(ng_file_entry, link, 28);
AT(ng_file_entry, bytes, 32);
AT(ng_file_entry, modified_ms, 40);
SIZE(ng_file_entry, 48);
PAD(ng_file_entry, link, 3);

AT(ng_file_list, size, 0);
AT(ng_file_list, path, 8);
AT(ng_file_list, depth, 24);
AT(ng_file_list, hidden, 28);
AT(ng_file_list, max_entries, 32);
AT(ng_file_list, sorted, 36);
AT(ng_file_list, from, 40);
AT(ng_file_list, content, 56);
SIZE(ng_file_list, 64);
PAD(ng_file_list, hidden, 3);
PAD(ng_file_list, sorted, 3);

AT(ng_file_transfer, size, 0);
AT(ng_file_transfer, from, 8);
AT(ng_file_transfer, to, 24);
AT(ng_file_transfer, expected_revision, 40);
AT(ng_file_transfer, keep, 56);
AT(ng_file_transfer, replied, 64);
AT(ng_file_transfer, user, 72);
AT(ng_file_transfer, exists_code, 80);
SIZE(ng_file_transfer, 88);
PAD(ng_file_transfer, keep, 7);
PAD(ng_file_transfer, exists_code, 4);
AT(ng_file_transfer, edits, 88);
AT(ng_file_transfer, edit_count, 96);
AT(ng_file_transfer, folder, 104);
SIZE(ng_file_transfer, 112);
PAD(ng_file_transfer, folder, 7);

AT(ng_file_undo, size, 0);
AT(ng_file_undo, path, 8);
AT(ng_file_undo, expected_revision, 24);
AT(ng_file_undo, replied, 40);
AT(ng_file_undo, user, 48);
AT(ng_file_undo, no_history_code, 56);
SIZE(ng_file_undo, 64);
PAD(ng_file_undo, no_history_code, 4);
AT(ng_file_undo, collection, 64);
SIZE(ng_file_undo, 72);

AT(ng_sides, base, 0);
AT(ng_sides, present, 16);
AT(ng_sides, before, 32);
SIZE(ng_sides, 48);

AT(ng_content_kind, ending, 0);
AT(ng_content_kind, view, 8);
AT(ng_content_kind, merge, 16);
AT(ng_content_kind, check, 24);
SIZE(ng_content_kind, 32);

/* ---- plugin.h ---- */

AT(ng_caller, size, 0);
AT(ng_caller, agent, 8);
AT(ng_caller, space, 24);
AT(ng_caller, space_named, 40);
AT(ng_caller, role, 44);
AT(ng_caller, mode, 48);
AT(ng_caller, spaces, 56);
AT(ng_caller, space_count, 64);
AT(ng_caller, all_spaces, 72);
AT(ng_caller, request_id, 80);
AT(ng_caller, traceparent, 96);
AT(ng_caller, run, 112);
SIZE(ng_caller, 120);
AT(ng_caller, rights, 120);
SIZE(ng_caller, 128);
AT(ng_caller, session, 128);
SIZE(ng_caller, 144);
AT(ng_caller, run_id, 144);
AT(ng_caller, key_id, 160);
AT(ng_caller, client, 176);
SIZE(ng_caller, 192);
PAD(ng_caller, space_named, 3);
PAD(ng_caller, mode, 4);
PAD(ng_caller, all_spaces, 7);
PAD(ng_caller, run, 7);

AT(ng_call, host, 0);
AT(ng_call, caller, 8);
AT(ng_call, args, 16);
AT(ng_call, tool, 24);
SIZE(ng_call, 40);

AT(ng_change, size, 0);
AT(ng_change, key, 8);
AT(ng_change, fn, 56);
AT(ng_change, user, 64);
AT(ng_change, action, 72);
AT(ng_change, has_expected, 80);
AT(ng_change, is_new, 81);
AT(ng_change, expected_revision, 88);
SIZE(ng_change, 96);
PAD(ng_change, is_new, 6);

AT(ng_undo_step, size, 0);
AT(ng_undo_step, present, 8);
AT(ng_undo_step, last, 16);
AT(ng_undo_step, former, 24);
AT(ng_undo_step, base, 32);
AT(ng_undo_step, undos, 40);
SIZE(ng_undo_step, 48);

AT(ng_undo, size, 0);
AT(ng_undo, key, 8);
AT(ng_undo, name, 56);
AT(ng_undo, instead, 72);
AT(ng_undo, fn, 88);
AT(ng_undo, user, 96);
AT(ng_undo, has_expected, 104);
AT(ng_undo, expected_revision, 112);
SIZE(ng_undo, 120);
PAD(ng_undo, has_expected, 7);

AT(ng_host, size, 0);
AT(ng_host, version, 8);
AT(ng_host, alloc, 16);
AT(ng_host, format, 24);
AT(ng_host, reply, 32);
AT(ng_host, reply_parts, 40);
AT(ng_host, reply_json, 48);
AT(ng_host, reply_media, 56);
AT(ng_host, reply_resource, 64);
AT(ng_host, reply_link, 72);
AT(ng_host, revision_number, 80);
AT(ng_host, revision_text, 88);
AT(ng_host, fail, 96);
AT(ng_host, hint, 104);
AT(ng_host, details, 112);
AT(ng_host, progress, 120);
AT(ng_host, cancelled, 128);
AT(ng_host, remaining_ms, 136);
AT(ng_host, may_block, 144);
AT(ng_host, now_ms, 152);
AT(ng_host, log, 160);
AT(ng_host, notify_log, 168);
AT(ng_host, ask, 176);
AT(ng_host, ask_state, 184);
AT(ng_host, asked_state, 192);
AT(ng_host, client_can, 200);
AT(ng_host, defer, 208);
AT(ng_host, finish, 216);
AT(ng_host, continue_on_worker, 224);
AT(ng_host, background, 232);
AT(ng_host, lists_changed, 240);
AT(ng_host, json_parse, 248);
AT(ng_host, json_type, 256);
AT(ng_host, json_count, 264);
AT(ng_host, json_get, 272);
AT(ng_host, json_first, 280);
AT(ng_host, json_next, 288);
AT(ng_host, json_key, 296);
AT(ng_host, json_text, 304);
AT(ng_host, json_integer, 312);
AT(ng_host, json_double, 320);
AT(ng_host, json_object, 328);
AT(ng_host, json_array, 336);
AT(ng_host, json_end, 344);
AT(ng_host, json_name, 352);
AT(ng_host, json_name_str, 360);
AT(ng_host, json_string, 368);
AT(ng_host, json_int, 376);
AT(ng_host, json_number, 384);
AT(ng_host, json_bool, 392);
AT(ng_host, json_null, 400);
AT(ng_host, json_copy, 408);
AT(ng_host, json_writer, 416);
AT(ng_host, json_result, 424);
AT(ng_host, conf_text, 432);
AT(ng_host, conf_int, 440);
AT(ng_host, conf_number, 448);
AT(ng_host, conf_bool, 456);
AT(ng_host, conf_list, 464);
AT(ng_host, get, 472);
AT(ng_host, query, 480);
AT(ng_host, search, 488);
AT(ng_host, history, 496);
AT(ng_host, changes, 504);
AT(ng_host, change, 512);
AT(ng_host, draft_json, 520);
AT(ng_host, draft_text, 528);
AT(ng_host, draft_splice, 536);
AT(ng_host, draft_delete, 544);
AT(ng_host, draft_event, 552);
AT(ng_host, file_stat, 560);
AT(ng_host, file_read, 568);
AT(ng_host, file_stream, 576);
AT(ng_host, file_list, 584);
AT(ng_host, file_edit, 592);
AT(ng_host, file_transfer, 600);
AT(ng_host, file_undo, 608);
AT(ng_host, file_roots, 616);
AT(ng_host, journal, 624);
AT(ng_host, list_add, 632);
AT(ng_host, fail_text, 640);
AT(ng_host, detach_client, 648);
AT(ng_host, list_after, 656);
AT(ng_host, file_folder, 664);
AT(ng_host, day, 672);
AT(ng_host, change_wait, 680);
AT(ng_host, change_as, 688);
AT(ng_host, fail_on_completion, 696);
AT(ng_host, on_complete, 704);
AT(ng_host, mask_cancel, 712);
AT(ng_host, idempotency_token, 720);
AT(ng_host, history_count, 728);
AT(ng_host, hint_text, 736);
AT(ng_host, log_text, 744);
SIZE(ng_host, 752);
AT(ng_host, gateway_name, 752);
AT(ng_host, gateway_term, 760);
AT(ng_host, gateway_find, 768);
SIZE(ng_host, 776);
AT(ng_host, later, 776);
AT(ng_host, start_later, 784);
SIZE(ng_host, 792);
AT(ng_host, find, 792);
AT(ng_host, answer_room, 800);
AT(ng_host, reply_meta, 808);
SIZE(ng_host, 816);
AT(ng_host, undo, 816);
AT(ng_host, purge, 824);
SIZE(ng_host, 832);
AT(ng_host, sqlite_bytes, 832);
SIZE(ng_host, 840);
AT(ng_host, collection, 840);
AT(ng_host, use_collection, 848);
AT(ng_host, point_seq, 856);
AT(ng_host, revision_at, 864);
AT(ng_host, trail, 872);
SIZE(ng_host, 880);
AT(ng_host, runs, 880);
SIZE(ng_host, 888);
AT(ng_host, members, 888);
AT(ng_host, restore, 896);
AT(ng_host, undo_changes, 904);
AT(ng_host, unfinished, 912);
SIZE(ng_host, 920);
AT(ng_host, use_file, 920);
AT(ng_host, file_view, 928);
SIZE(ng_host, 936);

AT(ng_tool, name, 0);
AT(ng_tool, title, 8);
AT(ng_tool, summary, 16);
AT(ng_tool, params, 24);
AT(ng_tool, result, 32);
AT(ng_tool, run, 40);
AT(ng_tool, effect, 48);
AT(ng_tool, space, 52);
AT(ng_tool, flags, 56);
AT(ng_tool, read_argument, 64);
AT(ng_tool, read_values, 72);
AT(ng_tool, aliases, 80);
AT(ng_tool, listed, 88);
SIZE(ng_tool, 96);
PAD(ng_tool, flags, 4);

AT(ng_option, name, 0);
AT(ng_option, type, 8);
AT(ng_option, fallback, 16);
AT(ng_option, min, 24);
AT(ng_option, max, 32);
AT(ng_option, secret, 40);
AT(ng_option, env, 48);
AT(ng_option, choices, 56);
AT(ng_option, help, 64);
SIZE(ng_option, 72);
PAD(ng_option, type, 4);
PAD(ng_option, secret, 7);

AT(ng_code, name, 0);
AT(ng_code, status, 8);
AT(ng_code, summary, 16);
SIZE(ng_code, 24);
PAD(ng_code, status, 4);

AT(ng_resources, kind, 0);
AT(ng_resources, uri_template, 8);
AT(ng_resources, title, 16);
AT(ng_resources, summary, 24);
AT(ng_resources, mime_type, 32);
AT(ng_resources, collection, 40);
AT(ng_resources, list, 48);
AT(ng_resources, read, 56);
AT(ng_resources, complete, 64);
SIZE(ng_resources, 72);
AT(ng_resources, find, 72);
AT(ng_resources, find_kind, 80);
AT(ng_resources, scans, 88);
SIZE(ng_resources, 96);
PAD(ng_resources, scans, 7);

AT(ng_hit, size, 0);
AT(ng_hit, id, 8);
AT(ng_hit, title, 24);
AT(ng_hit, agent, 40);
AT(ng_hit, excerpt, 56);
AT(ng_hit, updated_ms, 72);
AT(ng_hit, line, 80);
AT(ng_hit, kind, 88);
AT(ng_hit, space, 104);
AT(ng_hit, uri, 120);
AT(ng_hit, exact, 136);
SIZE(ng_hit, 144);
PAD(ng_hit, exact, 7);

AT(ng_find, size, 0);
AT(ng_find, text, 8);
AT(ng_find, limit, 24);
AT(ng_find, scan_until_ns, 32);
AT(ng_find, hit, 40);
AT(ng_find, user, 48);
AT(ng_find, total, 56);
AT(ng_find, incomplete, 64);
AT(ng_find, kinds, 72);
AT(ng_find, kind_count, 80);
AT(ng_find, unknown_kind, 88);
SIZE(ng_find, 104);
PAD(ng_find, limit, 4);
PAD(ng_find, incomplete, 7);

AT(ng_prompt, name, 0);
AT(ng_prompt, title, 8);
AT(ng_prompt, summary, 16);
AT(ng_prompt, params, 24);
AT(ng_prompt, get, 32);
AT(ng_prompt, complete, 40);
AT(ng_prompt, modes, 48);
AT(ng_prompt, space, 52);
SIZE(ng_prompt, 56);
AT(ng_prompt, is_guide, 56);
SIZE(ng_prompt, 64);
PAD(ng_prompt, is_guide, 7);

AT(ng_plugin, name, 0);
AT(ng_plugin, version, 8);
AT(ng_plugin, threads, 16);
AT(ng_plugin, tools, 24);
AT(ng_plugin, tool_count, 32);
AT(ng_plugin, start, 40);
AT(ng_plugin, stop, 48);
AT(ng_plugin, options, 56);
AT(ng_plugin, option_count, 64);
AT(ng_plugin, codes, 72);
AT(ng_plugin, code_count, 80);
AT(ng_plugin, collections, 88);
AT(ng_plugin, collection_count, 96);
AT(ng_plugin, resources, 104);
AT(ng_plugin, resource_count, 112);
AT(ng_plugin, prompts, 120);
AT(ng_plugin, prompt_count, 128);
AT(ng_plugin, health, 136);
AT(ng_plugin, name_prefix, 144);
AT(ng_plugin, invalid_input, 152);
AT(ng_plugin, uses, 160);
AT(ng_plugin, working, 168);
AT(ng_plugin, configured, 176);
SIZE(ng_plugin, 184);
AT(ng_plugin, notes, 184);
SIZE(ng_plugin, 192);
AT(ng_plugin, contents, 192);
AT(ng_plugin, content_count, 200);
SIZE(ng_plugin, 208);
PAD(ng_plugin, threads, 4);

/* ---- backend.h ---- */

AT(ng_field_value, name, 0);
AT(ng_field_value, use, 16);
AT(ng_field_value, text, 24);
AT(ng_field_value, number, 40);
SIZE(ng_field_value, 48);
PAD(ng_field_value, use, 4);

AT(ng_splice, at, 0);
AT(ng_splice, removed, 8);
AT(ng_splice, inserted, 16);
SIZE(ng_splice, 32);

AT(ng_put, size, 0);
AT(ng_put, key, 8);
AT(ng_put, base_revision, 56);
AT(ng_put, revision, 64);
AT(ng_put, deleted, 72);
AT(ng_put, quiet, 73);
AT(ng_put, no_history, 74);
AT(ng_put, json, 80);
AT(ng_put, text, 96);
AT(ng_put, json_splice, 112);
AT(ng_put, text_splice, 144);
AT(ng_put, fields, 176);
AT(ng_put, field_count, 184);
AT(ng_put, time_ms, 192);
AT(ng_put, created_ms, 200);
AT(ng_put, created_seq, 208);
AT(ng_put, agent, 216);
AT(ng_put, tool, 232);
AT(ng_put, action, 248);
AT(ng_put, event_data, 264);
AT(ng_put, seq, 280);
AT(ng_put, ticket, 288);
AT(ng_put, base_ticket, 296);
SIZE(ng_put, 304);
PAD(ng_put, no_history, 5);
AT(ng_put, origin, 304);
AT(ng_put, gateway, 376);
SIZE(ng_put, 392);

AT(ng_answer, size, 0);
AT(ng_answer, scope, 8);
AT(ng_answer, body_hash, 24);
AT(ng_answer, reply, 40);
AT(ng_answer, time_ms, 56);
AT(ng_answer, expires_ms, 64);
SIZE(ng_answer, 72);

AT(ng_batch, size, 0);
AT(ng_batch, puts, 8);
AT(ng_batch, put_count, 16);
AT(ng_batch, answer, 24);
AT(ng_batch, error, 32);
AT(ng_batch, failed_put, 544);
SIZE(ng_batch, 552);
AT(ng_batch, deadline_ns, 552);
SIZE(ng_batch, 560);

AT(ng_record, size, 0);
AT(ng_record, kind, 8);
AT(ng_record, doc, 16);
AT(ng_record, newest, 24);
AT(ng_record, event, 32);
AT(ng_record, answer, 40);
AT(ng_record, seq, 48);
AT(ng_record, fields, 56);
AT(ng_record, field_count, 64);
AT(ng_record, quiet, 72);
AT(ng_record, no_history, 73);
SIZE(ng_record, 80);
PAD(ng_record, kind, 4);
PAD(ng_record, newest, 7);
PAD(ng_record, no_history, 6);

AT(ng_kept, size, 0);
AT(ng_kept, before, 8);
AT(ng_kept, before_seq, 16);
AT(ng_kept, before_ms, 24);
AT(ng_kept, after, 32);
AT(ng_kept, after_seq, 40);
AT(ng_kept, after_ms, 48);
SIZE(ng_kept, 56);

AT(ng_documents, name, 0);
AT(ng_documents, version, 8);
AT(ng_documents, flags, 16);
AT(ng_documents, options, 24);
AT(ng_documents, option_count, 32);
AT(ng_documents, open, 40);
AT(ng_documents, close, 48);
AT(ng_documents, declare, 56);
AT(ng_documents, commit, 64);
AT(ng_documents, get, 72);
AT(ng_documents, query, 80);
AT(ng_documents, history, 88);
AT(ng_documents, changes, 96);
AT(ng_documents, answer, 104);
AT(ng_documents, search, 112);
AT(ng_documents, health, 120);
AT(ng_documents, stats, 128);
AT(ng_documents, maintain, 136);
AT(ng_documents, export_all, 144);
AT(ng_documents, import_begin, 152);
AT(ng_documents, import_record, 160);
AT(ng_documents, import_end, 168);
AT(ng_documents, verify, 176);
AT(ng_documents, last_seq, 184);
AT(ng_documents, engine, 192);
AT(ng_documents, settle, 200);
AT(ng_documents, history_count, 208);
SIZE(ng_documents, 216);
AT(ng_documents, watch, 216);
AT(ng_documents, advise, 224);
SIZE(ng_documents, 232);
AT(ng_documents, confirm, 232);
SIZE(ng_documents, 240);
AT(ng_documents, purge, 240);
AT(ng_documents, purge_events, 248);
AT(ng_documents, purge_data, 256);
AT(ng_documents, purge_sweep, 264);
SIZE(ng_documents, 272);
PAD(ng_documents, flags, 4);
AT(ng_documents, runs, 272);
SIZE(ng_documents, 280);
AT(ng_documents, revision_at, 280);
AT(ng_documents, trail, 288);
SIZE(ng_documents, 296);

/* ---- journal.h ---- */

AT(ng_entry, size, 0);
AT(ng_entry, kind, 8);
AT(ng_entry, event_id, 16);
AT(ng_entry, seq, 32);
AT(ng_entry, space, 40);
AT(ng_entry, time_ms, 56);
AT(ng_entry, agent, 64);
AT(ng_entry, action, 80);
AT(ng_entry, collection, 96);
AT(ng_entry, id, 112);
AT(ng_entry, title, 128);
AT(ng_entry, status, 144);
AT(ng_entry, version, 160);
AT(ng_entry, content, 168);
AT(ng_entry, source, 184);
AT(ng_entry, tags, 200);
AT(ng_entry, tag_count, 208);
AT(ng_entry, score, 216);
AT(ng_entry, data, 224);
SIZE(ng_entry, 240);
PAD(ng_entry, kind, 4);

AT(ng_recall, size, 0);
AT(ng_recall, space, 8);
AT(ng_recall, text, 24);
AT(ng_recall, source, 40);
AT(ng_recall, tags, 56);
AT(ng_recall, tag_count, 64);
AT(ng_recall, since_ms, 72);
AT(ng_recall, limit, 80);
AT(ng_recall, min_score, 88);
SIZE(ng_recall, 96);
AT(ng_recall, memories, 96);
SIZE(ng_recall, 104);
PAD(ng_recall, limit, 4);
PAD(ng_recall, memories, 7);

AT(ng_timeline, size, 0);
AT(ng_timeline, space, 8);
AT(ng_timeline, date, 24);
AT(ng_timeline, agent, 40);
AT(ng_timeline, limit, 56);
AT(ng_timeline, offset, 64);
SIZE(ng_timeline, 72);
PAD(ng_timeline, limit, 4);

AT(ng_journal, size, 0);
AT(ng_journal, name, 8);
AT(ng_journal, version, 16);
AT(ng_journal, options, 24);
AT(ng_journal, option_count, 32);
AT(ng_journal, open, 40);
AT(ng_journal, close, 48);
AT(ng_journal, deliver, 56);
AT(ng_journal, timeline, 64);
AT(ng_journal, recall, 72);
AT(ng_journal, summary, 80);
AT(ng_journal, set_summary, 88);
AT(ng_journal, dump, 96);
AT(ng_journal, restore, 104);
AT(ng_journal, checkpoint_put, 112);
AT(ng_journal, checkpoint_get, 120);
AT(ng_journal, checkpoint_list, 128);
AT(ng_journal, health, 136);
AT(ng_journal, flush, 144);
AT(ng_journal, restore_over, 152);
AT(ng_journal, restore_aside, 160);
AT(ng_journal, checkpoint_delete, 168);
AT(ng_journal, trim, 176);
AT(ng_journal, mark, 184);
AT(ng_journal, deliver_marked, 192);
SIZE(ng_journal, 200);
AT(ng_journal, memory, 200);
AT(ng_journal, forget, 208);
SIZE(ng_journal, 216);

/* ---- values that modules were compiled with ---- */

VALUE(NG_KIND_PLUGIN, 1);
VALUE(NG_KIND_DOCUMENTS, 2);
VALUE(NG_KIND_JOURNAL, 3);
VALUE(NG_FIELD_TAG, 1);
VALUE(NG_FIELD_NUMBER, 2);
VALUE(NG_FIELD_STRING, 3);
VALUE(NG_FIELD_TEXT, 4);
VALUE(NG_COLLECTION_TEXT_SEARCH, 1);
VALUE(NG_COLLECTION_QUIET, 2);
VALUE(NG_COLLECTION_REFERENCED, 4);
VALUE(NG_COLLECTION_NO_HISTORY, 8);
VALUE(NG_COLLECTION_CONTENT, 16);
VALUE(NG_TERM_EQ, 1);
VALUE(NG_TERM_NE, 2);
VALUE(NG_TERM_LT, 3);
VALUE(NG_TERM_LE, 4);
VALUE(NG_TERM_GT, 5);
VALUE(NG_TERM_GE, 6);
VALUE(NG_TERM_PREFIX, 7);
VALUE(NG_TERM_IN, 8);
VALUE(NG_FILE_NONE, 0);
VALUE(NG_FILE_REGULAR, 1);
VALUE(NG_FILE_DIRECTORY, 2);
VALUE(NG_FILE_OTHER, 3);
VALUE(NG_UNDO_EDIT, 1);
VALUE(NG_UNDO_CREATE, 2);
VALUE(NG_UNDO_MOVE, 3);
VALUE(NG_ROLE_READER, 1);
VALUE(NG_ROLE_WRITER, 2);
VALUE(NG_ROLE_ADMIN, 3);
VALUE(NG_MODE_ASK, 1);
VALUE(NG_MODE_EDIT, 2);
VALUE(NG_MODE_AGENT, 3);
VALUE(NG_TYPE_ABSENT, 0);
VALUE(NG_TYPE_NULL, 1);
VALUE(NG_TYPE_FALSE, 2);
VALUE(NG_TYPE_TRUE, 3);
VALUE(NG_TYPE_NUMBER, 4);
VALUE(NG_TYPE_STRING, 5);
VALUE(NG_TYPE_ARRAY, 6);
VALUE(NG_TYPE_OBJECT, 7);
VALUE(NG_ASK_FORM, 1);
VALUE(NG_ASK_MODEL, 2);
VALUE(NG_ASK_ROOTS, 3);
VALUE(NG_ASK_URL, 4);
VALUE(NG_LIST_TOOLS, 1);
VALUE(NG_LIST_RESOURCES, 2);
VALUE(NG_LIST_PROMPTS, 4);
VALUE(NG_LOG_ERROR, 1);
VALUE(NG_LOG_WARNING, 2);
VALUE(NG_LOG_INFO, 3);
VALUE(NG_LOG_DEBUG, 4);
VALUE(NG_THREADS_SERIAL, 0);
VALUE(NG_THREADS_PARALLEL, 1);
VALUE(NG_EFFECT_WRITES, 0);
VALUE(NG_EFFECT_READS, 1);
VALUE(NG_EFFECT_ADMIN, 2);
VALUE(NG_EFFECT_RUNS, 3);
VALUE(NG_TOOL_MEMORY, 1);
VALUE(NG_TOOL_DESTRUCTIVE, 2);
VALUE(NG_TOOL_IDEMPOTENT, 4);
VALUE(NG_TOOL_OPEN_WORLD, 8);
VALUE(NG_TOOL_OWN_TIMEOUT, 16);
VALUE(NG_TOOL_TASK_ALLOWED, 32);
VALUE(NG_TOOL_TASK_REQUIRED, 64);
VALUE(NG_TOOL_AGENT_MODE, 128);
VALUE(NG_TOOL_TASK_AFTER_ASKING, 256);
VALUE(NG_TOOL_STAYS, 512);
VALUE(NG_TOOL_RESTORES, 1024);
VALUE(NG_TOOL_BY_SPACE, 2048);
VALUE(NG_RIGHT_RESTORE, 1);
VALUE(NG_SPACE_OWN, 0);
VALUE(NG_SPACE_SHARED, 1);
VALUE(NG_OPTION_TEXT, 0);
VALUE(NG_OPTION_INT, 1);
VALUE(NG_OPTION_SIZE, 2);
VALUE(NG_OPTION_DURATION, 3);
VALUE(NG_OPTION_BOOL, 4);
VALUE(NG_OPTION_LIST, 5);
VALUE(NG_OPTION_NUMBER, 6);
VALUE(NG_RECORD_REVISION, 1);
VALUE(NG_RECORD_EVENT, 2);
VALUE(NG_RECORD_ANSWER, 3);
VALUE(NG_RECORD_SEQ, 4);
VALUE(NG_DOCUMENTS_SHARED, 1);
VALUE(NG_DOCUMENTS_MEMORY, 2);
VALUE(NG_DOCUMENTS_ONLY_DELETED, 4);
VALUE(NG_ENTRY_REFERENCE, 1);
VALUE(NG_ENTRY_MEMORY, 2);
VALUE(NG_ENTRY_FORGET, 3);
VALUE(NG_EJSON, -1);
VALUE(NG_EINVAL, -2);
VALUE(NG_EUNAUTHENTICATED, -3);
VALUE(NG_EFORBIDDEN, -4);
VALUE(NG_EMODE, -5);
VALUE(NG_EOUTSIDE, -6);
VALUE(NG_ETRAVERSAL, -7);
VALUE(NG_EUNKNOWN_TOOL, -8);
VALUE(NG_ENOTFOUND, -9);
VALUE(NG_EMETHOD, -10);
VALUE(NG_ECONFLICT, -11);
VALUE(NG_ETOOLARGE, -12);
VALUE(NG_EMEDIATYPE, -13);
VALUE(NG_EFAILED, -14);
VALUE(NG_EKEYREUSED, -15);
VALUE(NG_ERATE, -16);
VALUE(NG_EBUSY, -17);
VALUE(NG_EUNAVAILABLE, -18);
VALUE(NG_ETIMEOUT, -19);
VALUE(NG_EFULL, -20);
VALUE(NG_EINTERNAL, -21);
VALUE(NG_ECANCELLED, -22);
VALUE(NG_EQUERYTIMEOUT, -23);
VALUE(NG_EWOULDBLOCK, -24);
VALUE(NG_EINPUT, -25);
VALUE(NG_ERUN, -26);
VALUE(NG_ENOTCONFIGURED, -27);
VALUE(NG_OK, 0);
VALUE(NG_PENDING, 1);
VALUE(NG_EPLUGIN, -1000);
VALUE(NG_ABI, 1);
VALUE(NG_ITEM_SIZES, 8);
VALUE(NG_CHANGES_MAX, 64);
VALUE(NG_UNDO_MAX, 10);
VALUE(NG_UNDO_CHANGES, 2);

int main(void)
{
    /* Everything was checked by the compiler. */
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* docs_page.c - /docs: the tools as forms to try. Three static files, nothing from elsewhere;
 * its data comes from /v1/tools, as any other caller's. */
#include "api/http/http_reply.h"
#include "core/base/text_choice.h"
#include "rest.h"

#define STATUS_OK 200
#define STATUS_PERMANENT_REDIRECT 308

/* Only these files may run, style or be fetched; no page may frame this one. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* Addresses are relative, as a proxy may put the gateway below a path. The first two lead to
 * the page's own files, the others to the gateway. */
static const char page[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>notegate - tools</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<link rel=\"stylesheet\" href=\"%sdocs.css\">\n"
    "<script src=\"%sdocs.js\" defer></script>\n"
    "</head>\n"
    "<body>\n"
    "<header>\n"
    "<h1>notegate</h1>\n"
    "<p>Every tool that you may call, as a form. "
    "<a id=\"openapi\" href=\"%sopenapi.json\" download=\"openapi.json\">OpenAPI 3.1</a></p>\n"
    "<details><summary>Which notebook for what</summary>\n"
    "<table class=\"kinds\"><tbody>\n"
    "<tr><td>named texts, an agent's own or those of a space</td>"
    "<td><code>notebook</code></td></tr>\n"
    "<tr><td>entries that a team of agents writes and finds</td>"
    "<td><code>notebook_*</code>, <code>memory_*</code>, <code>checkpoint_*</code></td></tr>\n"
    "<tr><td>Markdown notes, in folders that people edit too</td>"
    "<td><code>opennotes_*</code></td></tr>\n"
    "<tr><td>Jupyter notebooks, .ipynb files</td><td><code>createNotebook</code>, "
    "<code>attachNotebook</code>, cells and kernels</td></tr>\n"
    "</tbody></table></details>\n"
    "<div class=\"caller\">\n"
    "<label>Key <input id=\"key\" type=\"password\" autocomplete=\"off\" placeholder=\"ng_..., "
    "if there are keys\"></label>\n"
    "<label id=\"as\">Agent <input id=\"agent\" placeholder=\"local\"></label>\n"
    "<label>Space <input id=\"space\" placeholder=\"its default\"></label>\n"
    "<label>Mode <select id=\"mode\"><option value=\"\">the highest</option>"
    "<option>ask</option><option>edit</option><option>agent</option></select></label>\n"
    "<button id=\"load\" type=\"button\">Load tools</button>\n"
    "</div>\n"
    "<label class=\"wide\">Find <input id=\"find\" type=\"search\" placeholder=\"name or words "
    "of "
    "the description\"></label>\n"
    "</header>\n"
    "<main id=\"tools\" aria-live=\"polite\"><p>Loading ...</p></main>\n"
    "<noscript><p>This page needs scripts; <a href=\"%sv1/tools\">/v1/tools</a> does "
    "not.</p></noscript>\n"
    "</body>\n"
    "</html>\n";

static const char style[] =
    ":root{--line:#d5d9e0;--soft:#f5f6f8;--ink:#1c2330;--mute:#5b6577;--accent:#2456b8;"
    "--bad:#b3261e;--paper:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--line:#353b47;--soft:#1d222b;--ink:#e6e9ef;"
    "--mute:#9aa4b5;--accent:#86aef5;--bad:#ff8a80;--paper:#14171d}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:60rem;padding:1.5rem;font:16px/1.5 system-ui,sans-serif;"
    "color:var(--ink);background:var(--paper)}\n"
    "h1{margin:0;font-size:1.6rem}\n"
    "a{color:var(--accent)}\n"
    "header p{margin:.2rem 0 1rem;color:var(--mute)}\n"
    ".caller{display:flex;flex-wrap:wrap;gap:.8rem;align-items:end}\n"
    "label{display:flex;flex-direction:column;flex:1 1 12rem;font-size:.85rem;"
    "color:var(--mute)}\n"
    "label.wide{margin:.8rem 0 1.2rem}\n"
    "input,textarea,select{font:inherit;color:var(--ink);background:var(--paper);"
    "border:1px solid var(--line);border-radius:6px;padding:.4rem .6rem}\n"
    "textarea,pre{font:13px/1.5 ui-monospace,monospace}\n"
    "textarea{width:100%;min-height:7rem;resize:vertical}\n"
    "button{font:inherit;padding:.4rem 1rem;border:0;border-radius:6px;color:var(--paper);"
    "background:var(--accent);cursor:pointer}\n"
    "button:disabled{opacity:.5}\n"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:2px}\n"
    "details{border:1px solid var(--line);border-radius:8px;margin:0 0 .7rem;"
    "background:var(--soft)}\n"
    "summary{padding:.6rem .9rem;cursor:pointer}\n"
    "summary code{font-weight:600;font-size:1rem}\n"
    "summary small{color:var(--mute);margin-left:.6rem}\n"
    ".inside{padding:0 .9rem .9rem}\n"
    ".about{white-space:pre-wrap;color:var(--mute);margin:0 0 .8rem}\n"
    "table{width:100%;border-collapse:collapse;font-size:.9rem;margin:0 0 .8rem}\n"
    "th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;"
    "border-top:1px solid var(--line)}\n"
    "pre{margin:.8rem 0 0;padding:.7rem;max-height:28rem;overflow:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere;border:1px solid var(--line);border-radius:6px;"
    "background:var(--paper)}\n"
    ".bad{color:var(--bad)}\n";

/* In two, because a C compiler need not take a text this long in one. */
static const char script_parts[] =
    "'use strict';\n"
    /* A caller may have come by /docs or by /docs/; the script has one address. */
    "const script = document.currentScript.src;\n"
    "const address = (path) => new URL('../' + path, script).href;\n"
    "const byId = (id) => document.getElementById(id);\n"
    "const make = (tag, text, name) => {\n"
    "  const node = document.createElement(tag);\n"
    "  if (text !== undefined) node.textContent = text;\n"
    "  if (name) node.className = name;\n"
    "  return node;\n"
    "};\n"
    "function headers(extra) {\n"
    "  const all = Object.assign({}, extra);\n"
    "  const key = byId('key').value.trim();\n"
    "  const agent = byId('agent').value.trim();\n"
    "  const space = byId('space').value.trim();\n"
    "  const mode = byId('mode').value;\n"
    "  if (key) all['Authorization'] = 'Bearer ' + key;\n"
    "  if (agent && !key) all['X-Notegate-Agent'] = agent;\n"
    "  if (space) all['X-Notegate-Space'] = space;\n"
    "  if (mode) all['X-Notegate-Mode'] = mode;\n"
    "  return all;\n"
    "}\n"
    "function typeOf(schema) {\n"
    "  if (schema === true || !schema) return 'any';\n"
    "  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(' | ');\n"
    "  if (Array.isArray(schema.type)) return schema.type.join(' | ');\n"
    "  if (schema.type === 'array' && schema.items) return typeOf(schema.items) + '[]';\n"
    "  return schema.type || 'any';\n"
    "}\n"
    /* A first click on Call must not overwrite anything. */
    "const harmless = new Set(['list', 'view', 'read', 'get', 'search', 'status']);\n"
    "function sample(schema) {\n"
    "  const out = {};\n"
    "  for (const name of schema.required || []) {\n"
    "    const part = (schema.properties || {})[name] || {};\n"
    "    if (part.default !== undefined) out[name] = part.default;\n"
    "    else if (part.enum) out[name] = part.enum.find((v) => harmless.has(v)) || "
    "part.enum[0];\n"
    "    else if (part.type === 'integer' || part.type === 'number') out[name] = 0;\n"
    "    else if (part.type === 'boolean') out[name] = false;\n"
    "    else if (part.type === 'array') out[name] = [];\n"
    "    else if (part.type === 'object') out[name] = {};\n"
    "    else out[name] = '';\n"
    "  }\n"
    "  return JSON.stringify(out, null, 2);\n"
    "}\n"
    "function parameters(schema) {\n"
    "  const table = make('table');\n"
    "  const needed = new Set(schema.required || []);\n"
    "  for (const [name, part] of Object.entries(schema.properties || {})) {\n"
    "    const row = table.insertRow();\n"
    "    row.insertCell().append(make('code', name + (needed.has(name) ? ' *' : '')));\n"
    "    row.insertCell().append(make('code', typeOf(part)));\n"
    "    row.insertCell().textContent = (part && part.description) || '';\n"
    "  }\n"
    "  return table;\n"
    "}\n";

static const char script_page[] =
    "async function run(tool, text, out, button) {\n"
    "  button.disabled = true;\n"
    "  out.hidden = false;\n"
    "  out.className = '';\n"
    "  out.textContent = '...';\n"
    "  try {\n"
    "    const answer = await fetch(address('v1/tools/' + encodeURIComponent(tool.name)), {\n"
    "      method: 'POST', body: text, headers: headers({'Content-Type': "
    "'application/json'}),\n"
    "    });\n"
    "    const body = await answer.json();\n"
    "    const plain = answer.ok && typeof body.result === 'string' && !body.content;\n"
    "    out.textContent = plain ? body.result : JSON.stringify(body, null, 2);\n"
    "    out.className = answer.ok ? '' : 'bad';\n"
    "  } catch (error) {\n"
    "    out.textContent = String(error);\n"
    "    out.className = 'bad';\n"
    "  }\n"
    "  button.disabled = false;\n"
    "}\n"
    "function card(tool) {\n"
    "  const box = make('details');\n"
    "  const head = make('summary');\n"
    "  head.append(make('code', tool.name));\n"
    "  const hints = tool.annotations || {};\n"
    "  head.append(make('small', hints.readOnlyHint ? 'reads' : hints.destructiveHint\n"
    "    ? 'writes, may overwrite' : 'writes'));\n"
    "  const inside = make('div', undefined, 'inside');\n"
    "  inside.append(make('p', tool.description, 'about'), parameters(tool.inputSchema));\n"
    "  const label = make('label', 'Arguments');\n"
    "  const text = make('textarea');\n"
    "  text.value = sample(tool.inputSchema);\n"
    "  text.spellcheck = false;\n"
    "  label.append(text);\n"
    "  const button = make('button', 'Call');\n"
    "  const out = make('pre');\n"
    "  out.hidden = true;\n"
    "  button.type = 'button';\n"
    "  button.addEventListener('click', () => run(tool, text.value, out, button));\n"
    "  inside.append(label, button, out);\n"
    "  box.append(head, inside);\n"
    "  box.dataset.words = (tool.name + ' ' + tool.description).toLowerCase();\n"
    "  return box;\n"
    "}\n"
    "function find() {\n"
    "  const words = byId('find').value.toLowerCase().split(/\\s+/).filter(Boolean);\n"
    "  for (const box of document.querySelectorAll('#tools details')) {\n"
    "    box.hidden = !words.every((word) => box.dataset.words.includes(word));\n"
    "  }\n"
    "}\n"
    /* The key stays in this tab, and is gone with it. */
    "const kept = ['key', 'agent', 'space', 'mode'];\n"
    "function remember() {\n"
    "  for (const name of kept) sessionStorage.setItem(name, byId(name).value);\n"
    "  byId('as').hidden = byId('key').value.trim() !== '';\n"
    "}\n"
    "function recall() {\n"
    "  for (const name of kept) byId(name).value = sessionStorage.getItem(name) || '';\n"
    "  remember();\n"
    "}\n"
    "function told(body) {\n"
    "  return make('p', body.message + (body.hint ? ' ' + body.hint + '.' : ''), 'bad');\n"
    "}\n"
    "async function load() {\n"
    "  const list = byId('tools');\n"
    "  remember();\n"
    "  try {\n"
    "    const answer = await fetch(address('v1/tools'), {headers: headers({})});\n"
    "    const body = await answer.json();\n"
    "    if (!answer.ok) {\n"
    "      const key = answer.status === 401;\n"
    "      list.replaceChildren(key ? make('p', body.message + '. Give a key above and press "
    "'\n"
    "        + 'Enter.', 'bad') : told(body));\n"
    "      if (key) byId('key').focus();\n"
    "      return;\n"
    "    }\n"
    "    list.replaceChildren(...body.tools.map(card));\n"
    "    if (body.tools.length === 0) list.append(make('p', 'This caller may call no "
    "tool.'));\n"
    "    find();\n"
    "  } catch (error) {\n"
    "    list.replaceChildren(make('p', String(error), 'bad'));\n"
    "  }\n"
    "}\n"
    /* A link cannot carry the key. */
    "async function openapi(event) {\n"
    "  if (!byId('key').value.trim()) return;\n"
    "  event.preventDefault();\n"
    "  const answer = await fetch(address('openapi.json'), {headers: headers({})});\n"
    "  if (!answer.ok) {\n"
    "    byId('tools').replaceChildren(told(await answer.json()));\n"
    "    return;\n"
    "  }\n"
    "  const link = make('a');\n"
    "  link.href = URL.createObjectURL(await answer.blob());\n"
    "  link.download = 'openapi.json';\n"
    "  link.click();\n"
    "  URL.revokeObjectURL(link.href);\n"
    "}\n"
    "recall();\n"
    "byId('load').addEventListener('click', load);\n"
    "byId('key').addEventListener('input', remember);\n"
    "for (const name of kept) {\n"
    "  byId(name).addEventListener('keydown', (event) => {\n"
    "    if (event.key === 'Enter') load();\n"
    "  });\n"
    "}\n"
    "byId('openapi').addEventListener('click', openapi);\n"
    "byId('find').addEventListener('input', find);\n"
    "load();\n";

static int answer(struct http_request *request, const char *type, const char *text, size_t size)
{
    struct http_reply *reply = &request->reply;
    reply->status = STATUS_OK;
    reply->content_type = type;
    reply->csp = policy;
    reply->cache = "no-cache";
    reply->fixed.data = text;
    reply->fixed.len = size - 1;
    return NG_OK;
}

int docs_page_redirect(struct http_request *request)
{
    (void)answer(request, "text/plain; charset=utf-8", "", 1);
    request->reply.status = STATUS_PERMANENT_REDIRECT;
    request->reply.location = "docs";
    return NG_OK;
}

int docs_page_html(struct http_request *request)
{
    bool below = request->target.has_slash; /* browsers resolve addresses from /docs/ then */
    (void)answer(request, "text/html; charset=utf-8", "", 1);
    request->reply.fixed.data = NULL; /* it is in the body */
    const char *files = text_if(!below, "docs/");
    const char *root = text_if(below, "../");
    (void)buf_printf(&request->reply.body, page, files, files, root, root);
    return NG_OK;
}

int docs_page_script(struct http_request *request)
{
    (void)buf_add(&request->reply.body, script_parts, sizeof(script_parts) - 1);
    (void)buf_add(&request->reply.body, script_page, sizeof(script_page) - 1);
    (void)answer(request, "text/javascript; charset=utf-8", "", 1);
    request->reply.fixed.data = NULL; /* it is in the body */
    return NG_OK;
}

int docs_page_style(struct http_request *request)
{
    return answer(request, "text/css; charset=utf-8", style, sizeof(style));
}

'use strict';
// Addresses are relative: a proxy may put the gateway below a path.
const script = document.currentScript.src;
const address = (path) => new URL('../' + path, script).href;
const byId = (id) => document.getElementById(id);
const make = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};
function headers(extra) {
  const all = Object.assign({}, extra);
  const key = byId('key').value.trim();
  const agent = byId('agent').value.trim();
  const space = byId('space').value.trim();
  const mode = byId('mode').value;
  if (key) all['Authorization'] = 'Bearer ' + key;
  if (agent && !key) all['X-Notegate-Agent'] = agent;
  if (space) all['X-Notegate-Space'] = space;
  if (mode) all['X-Notegate-Mode'] = mode;
  return all;
}

// ---- one argument ----

const listed = (value) => value === undefined ? [] : [].concat(value);
// The types that a schema takes; 'any' where it does not say.
function typesOf(schema) {
  if (typeof schema !== 'object') return ['any'];
  const parts = schema.anyOf || schema.oneOf;
  if (parts) return [...new Set(parts.flatMap(typesOf))];
  return schema.type === undefined ? ['any'] : listed(schema.type);
}
const isSimple = (types) => types.every((type) => ['string', 'integer', 'number', 'boolean'].includes(type));
const isNumber = (types) => types.every((type) => ['integer', 'number'].includes(type));
function kindOf(schema) {
  const types = typesOf(schema).filter((type) => type !== 'null');
  if (schema.enum) return 'choice';
  if (types.join() === 'boolean') return 'choice';
  if (types.join() === 'array' && isSimple(typesOf(schema.items))) return 'lines';
  const isTextOrList = types.includes('string') && types.includes('array') && !types.includes('object');
  if (types.join() === 'any' || isTextOrList) return 'open';
  if (!isSimple(types)) return 'json';
  return isNumber(types) ? 'number' : 'text';
}
function wordsOf(schema, needed) {
  let words = typesOf(schema).join(' or ');
  if (kindOf(schema) === 'lines') words = 'list of ' + typesOf(schema.items).join(' or ') + ', one a line';
  else if (kindOf(schema) === 'open') words = 'a text, or JSON';
  else if (kindOf(schema) === 'json') words += ', as JSON';
  if (schema.default !== undefined) words += ', default ' + JSON.stringify(schema.default);
  return words + (needed ? ', required' : '');
}
// "3" is a number where the schema takes numbers.
function valueOf(text, types) {
  if (!types.includes('string') || /^-?\d+(\.\d+)?$/.test(text) && types.some((type) => isNumber([type]))) {
    return Number(text);
  }
  return text;
}
// A list or an object as JSON, else a text.
function openValueOf(text) {
  return /^\s*[[{]/.test(text) ? JSON.parse(text) : text;
}
// A first click on Call must not overwrite anything.
const harmless = new Set(['list', 'view', 'read', 'get', 'search', 'status']);
function choices(select, schema, needed) {
  const values = schema.enum || [true, false];
  select.append(new Option(needed ? 'choose' : 'not set', ''));
  for (const value of values) select.append(new Option(String(value), JSON.stringify(value)));
  const first = needed && values.find((value) => harmless.has(value));
  if (first) select.value = JSON.stringify(first);
}
function control(schema, kind, needed) {
  const node = make(kind === 'choice' ? 'select' : kind === 'number' ? 'input' : 'textarea');
  if (kind === 'choice') {
    choices(node, schema, needed);
  } else if (kind === 'number') {
    node.type = 'number';
    node.step = typesOf(schema).includes('number') ? 'any' : '1';
    if (schema.minimum !== undefined) node.min = schema.minimum;
    if (schema.maximum !== undefined) node.max = schema.maximum;
  } else {
    node.rows = 1;
    node.spellcheck = false;
    if (kind === 'json') node.className = 'json';
  }
  // A text or a list may be empty.
  node.required = needed && kind !== 'text' && kind !== 'lines';
  return node;
}
// An argument of a tool: its box, and take(), its value; undefined leaves it out.
function field(tool, name, schema) {
  const needed = listed(tool.schema.required).includes(name);
  const kind = kindOf(schema);
  const box = make('div', undefined, 'field');
  const node = control(schema, kind, needed);
  const label = make('label');
  node.id = tool.name + '.' + name;
  label.htmlFor = node.id;
  label.append(make('code', name), ' ', make('small', wordsOf(schema, needed)));
  box.append(label, node);
  if (schema.description) {
    const hint = make('p', schema.description, 'hint');
    hint.id = node.id + '.hint';
    node.setAttribute('aria-describedby', hint.id);
    box.append(hint);
  }
  const take = () => {
    const text = node.value;
    if (kind === 'lines') {
      const lines = text.split('\n').filter((line) => line !== '');
      return lines.length || needed ? lines.map((line) => valueOf(line, typesOf(schema.items))) : undefined;
    }
    if (text === '' && !(needed && kind === 'text')) return undefined;
    if (kind === 'open') return openValueOf(text);
    return kind === 'text' || kind === 'number' ? valueOf(text, typesOf(schema)) : JSON.parse(text);
  };
  const check = () => {
    let fault = '';
    try { take(); } catch (error) { fault = String(error.message); }
    node.setCustomValidity(fault);
    return fault === '';
  };
  node.addEventListener('input', check);
  return {name, box, take, check};
}

// ---- one tool ----

const firstSentence = (text) => text.match(/^[^\n]*?(?=(?<!e\.g|i\.e)\.\s|\.?\s*(\n|$))/)[0];
async function run(tool, text, out, button) {
  button.disabled = true;
  out.hidden = false;
  out.className = '';
  out.textContent = '...';
  try {
    const answer = await fetch(address('v1/tools/' + encodeURIComponent(tool.name)), {
      method: 'POST', body: text, headers: headers({'Content-Type': 'application/json'}),
    });
    const body = await answer.json();
    const plain = answer.ok && typeof body.result === 'string' && !body.content;
    out.textContent = plain ? body.result : JSON.stringify(body, null, 2);
    out.className = answer.ok ? '' : 'bad';
  } catch (error) {
    out.textContent = String(error);
    out.className = 'bad';
  }
  button.disabled = false;
}
// The arguments as one text. While it is open, it is sent, and the form is disabled.
function rawBox(tool, form, fields, collect) {
  const box = make('details');
  const inside = make('div', undefined, 'inside');
  const label = make('label', 'Arguments as one JSON object; sent while this is open');
  const text = make('textarea', undefined, 'json');
  text.id = tool.name + '..json';
  text.spellcheck = false;
  label.htmlFor = text.id;
  inside.append(label, text);
  box.append(make('summary', 'As JSON'), inside);
  box.addEventListener('toggle', () => {
    if (box.open) text.value = JSON.stringify(collect(), null, 2);
    fields.disabled = box.open;
  });
  return {box, text};
}
function fill(inside, tool) {
  const form = make('form');
  const set = make('fieldset');
  const fields = Object.entries(tool.schema.properties || {}).map(([name, schema]) => field(tool, name, schema));
  const collect = () => Object.fromEntries(fields.filter((one) => one.check()).map((one) => [one.name, one.take()]));
  const raw = rawBox(tool, form, set, collect);
  const button = make('button', 'Call');
  const out = make('pre');
  out.hidden = true;
  out.tabIndex = 0;
  out.setAttribute('role', 'status');
  out.setAttribute('aria-label', 'Answer of ' + tool.name);
  set.append(...fields.map((one) => one.box));
  form.append(set, raw.box, button);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    run(tool, raw.box.open ? raw.text.value : JSON.stringify(collect()), out, button);
  });
  const more = tool.about.slice(firstSentence(tool.about).length).replace(/^\.?\s*/, '');
  if (more) inside.append(make('p', more, 'about'));
  inside.append(form, out);
}
const effects = {reads: 'reads', writes: 'writes', runs: 'runs code', admin: 'for admins'};
function card(tool) {
  const box = make('details', undefined, 'tool');
  const head = make('summary');
  const inside = make('div', undefined, 'inside');
  const loses = tool.effect === 'writes' && tool.destructive;
  const effect = effects[tool.effect] + (loses ? ', may overwrite or remove' : '');
  head.append(make('code', tool.name), ' ', make('small', effect), ' ');
  head.append(make('span', firstSentence(tool.about), 'about'));
  box.append(head, inside);
  box.addEventListener('toggle', () => {
    if (box.open && !inside.firstChild) fill(inside, tool);
  });
  box.dataset.words = (tool.name + ' ' + tool.about).toLowerCase();
  return box;
}

// ---- all of them ----

// The tools of an OpenAPI document: operations with an effect.
function toolsOf(api) {
  const posts = Object.values(api.paths).map((path) => path.post).filter((post) => post && post['x-notegate']);
  return posts.map((post) => ({
    name: post.operationId, about: post.description, plugin: post.tags[0], effect: post['x-notegate'].effect,
    destructive: post['x-notegate'].destructive, schema: api.components.schemas[post.operationId + '_arguments'],
  }));
}
const counted = (count, what) => count + ' ' + what + (count === 1 ? '' : 's');
function group(plugin, tools) {
  const section = make('section');
  const head = make('h2', plugin + ' ');
  head.append(make('small', counted(tools.length, 'tool')));
  section.append(head, ...tools.map(card));
  return section;
}
function say(text, bad) {
  byId('status').textContent = text;
  byId('status').className = bad ? 'bad' : '';
}
function find() {
  const words = byId('find').value.toLowerCase().split(/\s+/).filter(Boolean);
  const boxes = [...document.querySelectorAll('.tool')];
  for (const box of boxes) box.hidden = !words.every((word) => box.dataset.words.includes(word));
  for (const section of document.querySelectorAll('section')) {
    section.hidden = ![...section.querySelectorAll('.tool')].some((box) => !box.hidden);
  }
  const found = boxes.filter((box) => !box.hidden).length;
  const plugins = document.querySelectorAll('section').length;
  if (words.length) say(found + ' of ' + boxes.length + ' tools');
  else if (boxes.length) say(counted(boxes.length, 'tool') + ' of ' + counted(plugins, 'plugin'));
  else say('This caller may call no tool.');
}
// The key stays in this tab, and is gone with it.
const kept = ['key', 'agent', 'space', 'mode'];
function remember() {
  for (const name of kept) sessionStorage.setItem(name, byId(name).value);
  byId('as').hidden = byId('key').value.trim() !== '';
}
function recall() {
  for (const name of kept) byId(name).value = sessionStorage.getItem(name) || '';
  remember();
}
const sentence = (text) => text ? text + (/[.!?]$/.test(text) ? '' : '.') : '';
// What the server says is what helps: a gateway without keys wants none.
async function refused(answer) {
  const body = await answer.json();
  const asked = answer.status === 401;
  const more = asked && !byId('key').value.trim() ? 'A key goes into the field above; then press Enter.' : '';
  byId('tools').replaceChildren();
  say([sentence(body.message), sentence(body.hint), more].filter(Boolean).join(' '), true);
  if (asked) byId('key').focus();
}
const described = () => fetch(address('openapi.json'), {headers: headers({})});
async function load() {
  remember();
  try {
    const answer = await described();
    if (!answer.ok) return refused(answer);
    const tools = toolsOf(await answer.json());
    const plugins = [...new Set(tools.map((tool) => tool.plugin))];
    byId('tools').replaceChildren(
      ...plugins.map((plugin) => group(plugin, tools.filter((tool) => tool.plugin === plugin))));
    find();
  } catch (error) {
    byId('tools').replaceChildren();
    say(String(error), true);
  }
}
// A link cannot carry the key.
async function openapi(event) {
  if (!byId('key').value.trim()) return;
  event.preventDefault();
  const answer = await described();
  if (!answer.ok) {
    await refused(answer);
    return;
  }
  const link = make('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = 'openapi.json';
  link.click();
  URL.revokeObjectURL(link.href);
}
recall();
byId('caller').addEventListener('submit', (event) => {
  event.preventDefault();
  load();
});
byId('key').addEventListener('input', remember);
byId('openapi').addEventListener('click', openapi);
byId('find').addEventListener('input', find);
load();

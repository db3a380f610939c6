/* SPDX-License-Identifier: MIT */
/* openapi_fixed.c - components of /openapi.json that do not depend on the tools. */
#include "openapi_fixed.h"
#include "core/base/text_choice.h"

#define NAME_PATTERN "[A-Za-z0-9._@-]{1,64}"
#define LIST                                                                                   \
    "'style':'form','explode':false,'schema':{'type':'array','minItems':1,'maxItems':32,"      \
    "'items':{'$ref':'#/components/schemas/"
#define TEXTS(item)                                                                            \
    "'style':'form','explode':false,'schema':{'type':'array','minItems':1,'maxItems':32,"      \
    "'items':" item "}"
#define NAME "{'type':'string','pattern':'^" NAME_PATTERN "$'}"
#define SPACE "{'type':'string','pattern':'^~?" NAME_PATTERN "$'}"
#define RUN "{'type':'string','pattern':'^[A-Za-z0-9._:-]{1,64}$'}"
#define TEXT "{'type':'string'}"
/* In a query: no control characters. */
#define QUERY_TEXT "{'type':'string','pattern':'^[^\\\\u0000-\\\\u001f\\\\u007f]*$'}"
#define QUERY_PATH "{'type':'string','pattern':'^/[^\\\\u0000-\\\\u001f\\\\u007f]*$'}"
#define TEXT_OR_NULL "{'type':['string','null']}"
#define COUNT "{'type':'integer','minimum':0}"
#define TIME "{'type':'string','format':'date-time'}"
#define POINT                                                                                  \
    "{'anyOf':[" TIME ",{'type':'string','format':'date'},{'type':'string','pattern':"         \
    "'^(now|#[0-9]{1,18}|[1-9][0-9]{0,3}(s|m|min|h|d))$'}]}"
#define ROLE "{'$ref':'#/components/schemas/Role'}"
#define MODE "{'$ref':'#/components/schemas/Mode'}"
#define FAILURE                                                                                \
    "'content':{'application/json':{'schema':{'$ref':'#/components/schemas/Failure'}}}}"

const char openapi_info[] =
    "{'openapi':'3.1.0','info':{'title':'notegate','version':'" NOTEGATE_VERSION "',"
    "'summary':'Shared, durable notebooks and file tools for AI agents.',"
    "'description':'Every tool is one operation: the body holds its arguments, the answer its "
    "result. Failures are the error object with the HTTP status of its code.',"
    "'contact':{'name':'The operator of this gateway'},"
    "'license':{'name':'MIT','identifier':'MIT'}}";

static const char components[] =
    "{'securitySchemes':{'key':{'type':'http','scheme':'bearer','description':'A key made with "
    "`notegate key add NAME`. While no key exists, callers on loopback that run as the user of "
    "the gateway need none.'}},'parameters':{";

static const char agent_parameter[] =
    "'Agent':{'name':'X-Notegate-Agent','in':'header','description':'The name of the caller "
    "(local, if none is given); only while no key exists.','schema':" NAME "},";

static const char call_parameters[] =
    "'Space':{'name':'X-Notegate-Space','in':'header','description':'The space to work in.',"
    "'schema':" SPACE "},"
    "'Mode':{'name':'X-Notegate-Mode','in':'header','description':'A lower mode than that of "
    "the key.','schema':" MODE
    "},'Run':{'name':'X-Notegate-Run','in':'header','description':'The run: a label of the "
    "calls that are one piece of work. Not undo-...','schema':" RUN
    "},'IdempotencyKey':{'name':'Idempotency-Key','in':'header','description':'A write with a "
    "key is done once; a retry gets the first "
    "answer.','schema':{'type':'string','pattern':'^[!-~]([ "
    "-~]{0,253}[!-~])?$'}},'ToolName':{'name':'name','in':'path','required':true,'description':"
    "'The name of a "
    "tool.','schema':{'type':'string','pattern':'^[A-Za-z][A-Za-z0-9_]*$'}},'Format':{'name':'"
    "format','in':'query','description':'The form of the "
    "definitions.','schema':{'$ref':'#/components/schemas/Format'}},"
    "'Raw':{'name':'raw','in':'query','description':'The whole answer, also over "
    "tools.max_answer.','schema':{'type':'boolean','default':false}},";

static const char events_parameters[] =
    "'Since':{'name':'since','in':'query','description':'Events after this one; without a "
    "position: from now on, a page from 0.','schema':" COUNT "},"
    "'From':{'name':'from','in':'query','description':'Instead of since: a point, #SEQ, a time "
    "of RFC 3339, a day, an age such as 30m or 2h, or now.','schema':" POINT
    "},'To':{'name':'to','in':'query','description':'Events up to this point.','schema':" POINT
    "},'Limit':{'name':'limit','in':'query','description':'Events of a page.','schema':{"
    "'type':'integer','minimum':1,'maximum':1000,'default':100}},"
    "'Collection':{'name':'collection','in':'query','description':'Only these.'," LIST
    "CollectionName'}}},'ChangedBy':{'name':'tool','in':'query','description':'Only changes by "
    "these tools.'," LIST "ToolName'}}},'ChangedByAgent':{'name':'agent','in':'query',"
    "'description':'Only changes of these agents.'," TEXTS(
        NAME) "},'ChangedInRun':{'name':'run','in':"
              "'query','description':'Only changes of these runs.'," TEXTS(
                  RUN) "},"
                       "'LastEventId':{'name':'Last-Event-ID','in':'header','description':'The "
                       "position to resume "
                       "at; beats "
                       "since.','schema':{'type':'string','pattern':'^[0-9]{1,19}$'}},";

static const char mcp_parameters[] =
    "'McpVersion':{'name':'MCP-Protocol-Version','in':'header','description':'The revision of "
    "MCP that is spoken.','schema':" TEXT "},"
    "'McpSession':{'name':'Mcp-Session-Id','in':'header','required':true,'description':'The "
    "session.','schema':" TEXT "},"
    "'McpSessionOf':{'name':'Mcp-Session-Id','in':'header','description':'The session; older "
    "revisions only.','schema':" TEXT "},"
    "'McpEvent':{'name':'Last-Event-ID','in':'header','description':'The message to go on "
    "after.','schema':" TEXT "},"
    "'McpMethod':{'name':'Mcp-Method','in':'header','description':'The method of the message; "
    "newer revisions only.','schema':" TEXT "},"
    "'McpName':{'name':'Mcp-Name','in':'header','description':'What the method is applied to; "
    "newer revisions only.','schema':" TEXT "}";

static const char keys_parameters[] =
    ",'AllKeys':{'name':'all','in':'query','description':'Revoked and expired ones too.',"
    "'schema':{'type':'boolean','default':false}},"
    "'KeysOf':{'name':'name','in':'query','description':'Only those of this agent, and the one "
    "with this id.','schema':" NAME "},"
    "'KeyId':{'name':'id','in':'path','required':true,'description':'The id of a key.',"
    "'schema':{'type':'string','pattern':'^[a-z0-9]{12}$'}},"
    "'Force':{'name':'force','in':'query','description':'Also the last key in force.',"
    "'schema':{'type':'boolean','default':false}},"
    "'WithFiles':{'name':'files','in':'query','description':'The files of the roots too.',"
    "'schema':{'type':'boolean','default':false}}";

static const char audit_parameters[] =
    ",'AuditAgent':{'name':'agent','in':'query','description':'Only of this agent, or "
    "of one of several by commas, as for all but `id` and `path`.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditKey':{'name':'key','in':'query','description':'Only with the key of this id.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditRun':{'name':'run','in':'query','description':'Only of this run.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditTool':{'name':'tool','in':'query','description':'Only of this tool.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditAction':{'name':'action','in':'query','description':'Only with a change of this "
    "kind: created, updated, deleted and such.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditSpace':{'name':'space','in':'query','description':'Only of this space.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditCollection':{'name':'collection','in':'query','description':'Only with a document "
    "of this collection.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditId':{'name':'id','in':'query','description':'Only with this document; a final * is "
    "any end, \\\\* the character itself.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditPath':{'name':'path','in':'query','description':'Only with this file: its absolute "
    "path; a final * as of `id`, which it excludes.',"
    "'schema':" QUERY_PATH "}"
    ",'AuditOutcome':{'name':'outcome','in':'query','description':'Only with this outcome: ok, "
    "recovered, an error code.',"
    "'schema':" QUERY_TEXT "}"
    ",'AuditSince':{'name':'since','in':'query','description':'After this point; of #1234 only "
    "entries with later changes.','schema':" POINT "},"
    "'AuditUntil':{'name':'until','in':'query','description':'Up to this point; of #1234 only "
    "entries with changes.','schema':" POINT "},"
    "'AuditBefore':{'name':'before','in':'query','description':'Entries with numbers below; "
    "`next` of the page before.','schema':" COUNT "},"
    "'AuditLimit':{'name':'limit','in':'query','description':'Most entries of the page.',"
    "'schema':{'type':'integer','minimum':1,'maximum':200,'default':20}},"
    "'AuditTile':{'name':'path','in':'path','required':true,'description':'Of a tile, as C2SP "
    "tlog-tiles has it: 0/000, entries/x001/067.p/12.','schema':{'type':'string','pattern':"
    "'^([0-9]+|entries)/(x[0-9]{3}/)*[0-9]{3}([.]p/[0-9]{1,3})?$'}}";

static const char responses[] =
    "},'headers':{'Run':{'description':'The run of the call; absent: it has "
    "none.','schema':" RUN
    "}},'responses':{'Failure':{'description':'The call failed; `code` says "
    "how.','headers':{'X-Notegate-Run':{'$ref':'#/components/headers/Run'},"
    "'X-Request-Id':{'description':'The id of the request in the "
    "log.','schema':" TEXT "}}," FAILURE ","
    "'BadRequest':{'description':'The request or an argument is not valid.'," FAILURE ","
    "'Unauthorized':{'description':'A key is needed, or the key is not valid.'," FAILURE ","
    "'Forbidden':{'description':'The role, mode, space or list of tools of the key forbids "
    "it.'," FAILURE ",'NotFound':{'description':'The resource does not exist.'," FAILURE
    ",'Conflict':{'description':'It has changed since the given revision, or it exists "
    "already.'," FAILURE ","
    "'TooLarge':{'description':'The body, a text or the result is over its limit.'," FAILURE ","
    "'Unprocessable':{'description':'The tool could not do it, or the idempotency key came "
    "with "
    "another request before.'," FAILURE ","
    "'TooManyRequests':{'description':'The rate of the key is used up; see Retry-After.',"
    "" FAILURE ","
    "'Unavailable':{'description':'The gateway or its database takes no call now.'," FAILURE ","
    "'StorageFull':{'description':'There is no space left for it.'," FAILURE ","
    "'McpFailure':{'description':'The message was refused; the member data of the error is the "
    "error object.','content':{'application/json':{'schema':{"
    "'$ref':'#/components/schemas/Message'}}}}},";

static const char schemas[] =
    "'schemas':{'Mode':{'type':'string','enum':['ask','edit','agent']},"
    "'Role':{'type':'string','enum':['reader','writer','admin']},"
    "'Format':{'type':'string','default':'mcp','enum':['mcp','openai','openai-responses',"
    "'anthropic','gemini']},"
    "'Definition':{'type':'object'},"
    "'Tools':{'type':'object','required':['tools'],'properties':{'tools':{'type':'array',"
    "'items':{'$ref':'#/components/schemas/Definition'}}}},"
    "'Definitions':{'anyOf':[{'$ref':'#/components/schemas/Tools'},{'type':'array','items':{"
    "'$ref':'#/components/schemas/Definition'}}]},"
    "'Arguments':{'type':'object'},"
    "'Answer':{'type':'object','required':['result'],'properties':{'result':{},'content':{"
    "'type':'array','items':{'$ref':'#/components/schemas/Content'}},'revision':{'anyOf':[{"
    "'type':'integer'},{'type':'string'}]},'_meta':{'type':'object'}}},"
    "'Failure':{'type':'object','required':['error','code','message'],'properties':{"
    "'error':{'type':'boolean','const':true},'code':{'type':'string','examples':["
    "'INVALID_INPUT','NOT_FOUND','CONFLICT']},'message':" TEXT ",'hint':" TEXT ","
    "'details':{'type':'object'}}},"
    "'Content':{'type':'object','required':['type'],'properties':{'type':{'type':'string',"
    "'enum':['text','image','audio','resource','resource_link']}}},"
    "'Message':{'type':'object','required':['jsonrpc'],'properties':{'jsonrpc':{"
    "'type':'string','const':'2.0'},'id':{'anyOf':[" TEXT ",{'type':'integer'},{'type':'null'}"
    "]},'method':" TEXT ",'params':{'type':'object'},'result':{'type':'object'},"
    "'error':{'type':'object'}}},"
    "'McpRequest':{'type':'object','required':['jsonrpc','method'],'properties':{'jsonrpc':{"
    "'type':'string','const':'2.0'},'id':{'anyOf':[" TEXT ",{'type':'integer'}]},"
    "'method':" TEXT ",'params':{'type':'object'}}},"
    "'Document':{'type':'object'},"
    "'Health':{'type':'object','required':['status'],'properties':{'status':{'type':'string',"
    "'const':'ok'}}},"
    "'Readiness':{'type':'object','required':['status'],'properties':{'status':{"
    "'type':'string','enum':['ready','degraded','not ready']},'code':" TEXT ","
    "'message':" TEXT ",'reasons':{'type':'array','items':" TEXT "},'working':{'type':'array',"
    "'items':" TEXT "},'backlog':" COUNT ",'version':" TEXT "}},"
    "'Me':{'type':'object','required':['agent','role','mode','run','auth','spaces',"
    "'default_space','roots','notes','version','seq','kinds'],'properties':{'agent':" NAME ","
    "'role':" ROLE ",'mode':" MODE ",'run':{'type':'boolean','description':'May run code.'},"
    "'auth':{'type':'string','enum':['key','local']},"
    "'key':{'type':'object','required':['id'],'properties':{'id':" TEXT ",'expires':" TIME "}},"
    "'tools':{'type':'array','items':" TEXT ",'description':'The only ones it may use.'},"
    "'no_tools':{'type':'array','items':" TEXT ",'description':'Those it may not use.'},"
    "'spaces':{'type':'array','items':" SPACE "},'default_space':" SPACE ","
    "'roots':{'type':'array','items':" TEXT "},"
    "'notes':{'type':'array','items':{'type':'object','required':['name','path','space'],"
    "'properties':{'name':" TEXT ",'path':" TEXT ",'space':" SPACE "}}},"
    "'version':" TEXT ",'seq':{'type':'integer','minimum':0,'description':'The newest event.'},"
    "'kinds':{'type':'array','items':{'type':'object','required':['kind','title','type'],"
    "'properties':{'kind':" TEXT ",'title':" TEXT ",'type':{'type':['string','null']}}}}}},"
    "'Reload':{'type':'object','required':['changes','restart_needed'],'properties':{"
    "'changes':{'type':'array','items':{'type':'object','properties':{'key':" TEXT ","
    "'holds':{'type':'boolean'},'message':" TEXT "}}},'restart_needed':{'type':'boolean'}}}";

/* Of a request for a key, and of one that changes it. */
#define TOOLS                                                                                  \
    "{'anyOf':[{'$ref':'#/components/schemas/ToolName'},{'type':'string','pattern':"           \
    "'^[a-zA-Z0-9_*?]{0,31}[*?][a-zA-Z0-9_*?]{0,31}$'}]}"
#define KEY_MEMBERS                                                                            \
    "'role':" ROLE ",'mode':" MODE                                                             \
    ",'run':{'type':'boolean','description':'May run code. Only a caller that may gives "      \
    "that right.'},'restore':{'type':'boolean','description':'May restore checkpoints, and "   \
    "delete those of other agents, as an admin may.'},"                                        \
    "'spaces':{'type':'array','maxItems':64,'items':" SPACE "},"                               \
    "'tools':{'type':'array','minItems':1,'maxItems':256,'items':" TOOLS                       \
    ",'description':'The only tools that it may use: names, and globs with * and ?.'},"        \
    "'no_tools':{'type':'array','maxItems':256,'items':" TOOLS                                 \
    ",'description':'Tools that it may not use, whatever `tools` says.'},"                     \
    "'rate':{'anyOf':[{'type':'number','minimum':0.001,'maximum':1000000},{'type':'string',"   \
    "'pattern':'^[1-9][0-9]{0,3}(/(s|sec|m|min|h))?$'}],'description':'Calls a second, or "    \
    "5/s, 100/min.'},"                                                                         \
    "'note':{'type':'string','maxLength':200,'description':'What the key is for: one line.',"  \
    "'pattern':'^[^\\\\u0000-\\\\u001f\\\\u007f-\\\\u009f\\\\u2028\\\\u2029]*$'},"             \
    "'expires':{'anyOf':[{'type':'string','pattern':'^[1-9][0-9]{0,3}(min|h|d)$'},{"           \
    "'type':'string','format':'date'}," TIME                                                   \
    "],'description':'A time in the future, or 30d for 30 days from now.'}"

static const char events_schemas[] =
    ",'Event':{'type':'object','properties':{'id':" TEXT ",'event':" TEXT ",'data':{"
    "'type':'string','contentMediaType':'application/json'}}},"
    "'EventPage':{'type':'object','required':['events','next','has_more'],'properties':{"
    "'events':{'type':'array','items':{'type':'object'}},'next':" COUNT ","
    "'has_more':{'type':'boolean'}}}";

static const char key_request_schemas[] =
    ",'KeyRequest':{'type':'object','additionalProperties':false,'required':['agent'],"
    "'properties':{'agent':" NAME "," KEY_MEMBERS "}}";

static const char key_change_schemas[] =
    ",'KeyChange':{'type':'object','additionalProperties':false,'minProperties':1,"
    "'properties':{" KEY_MEMBERS ",'paused':{'type':'boolean','description':'A paused key is "
    "refused with 401.'}}}";

static const char keys_schemas[] =
    ",'Key':{'type':'object','required':['id','agent','role','mode','run','restore','spaces','"
    "created','paused','state'],'properties':{'key':{'type':'string','description':'The text "
    "to send as "
    "bearer; only in the answer that made it.'},'new_spaces':{'type':'array','items':" TEXT
    ",'description':'Of the given spaces those without documents and other keys; only in the "
    "answer that made it or changed its spaces.'},'id':" TEXT ",'agent':" TEXT ",'role':" ROLE
    ","
    "'mode':" MODE ",'run':{'type':'boolean'},'restore':{'type':'boolean'},'spaces':{'type':'"
    "array','items':" TEXT "},"
    "'tools':{'type':'array','items':" TEXT "},'no_tools':{'type':'array','items':" TEXT
    "},'rate':{'type':'number'},'created':" TIME ","
    "'last_used':" TIME ",'made_by':" TEXT ",'note':" TEXT ",'expires':" TIME ",'revoked':" TIME
    ",'paused':{'type':'boolean'},'state':{'type':'string',"
    "'enum':['live','paused','revoked','expired']}}},"
    "'Keys':{'type':'object','required':['keys'],'properties':{'keys':{'type':'array',"
    "'items':{'$ref':'#/components/schemas/Key'}}}},"
    "'Configuration':{'type':'object','required':['keys'],'properties':{'keys':{'type':'array',"
    "'items':{'type':'object','required':['key','value','default','source','reloadable','help']"
    ","
    "'properties':{'key':" TEXT ",'value':" TEXT_OR_NULL ",'default':" TEXT_OR_NULL
    ",'source':{"
    "'type':'string','enum':['default','file','environment','command line']},'reloadable':{"
    "'type':'boolean','description':'A reload can change it.'},'help':" TEXT "}}}}},"
    "'Verification':{'type':'object','required':['faults','count','ok'],'properties':{"
    "'faults':{'type':'array','items':{'type':'object'}},'count':" COUNT ","
    "'ok':{'type':'boolean'},'data_dir':" TEXT ",'backend':" TEXT ",'documents':" COUNT ","
    "'revisions':" COUNT ",'events':" COUNT "}}";

static const char audit_schemas[] =
    ",'AuditPage':{'type':'object','required':['entries','has_more'],'properties':{'entries':{"
    "'type':'array','items':{'type':'object','required':['number','time'],'properties':{"
    "'number':" COUNT ",'time':" TIME ",'face':" TEXT ",'agent':" TEXT ",'key':" TEXT
    ",'role':" TEXT ",'mode':" TEXT ",'space':" TEXT ",'remote':" TEXT ",'client':" TEXT
    ",'tool':" TEXT ",'operation':" TEXT ",'outcome':" TEXT ",'docs':{'type':'array','items':{"
    "'type':'object','properties':{'collection':" TEXT ",'id':" TEXT ",'revision':" COUNT
    ",'seq':" COUNT ",'action':" TEXT "}}},'run':" TEXT ",'trace':" TEXT ",'request':" TEXT
    ",'ms':" COUNT "}}},'has_more':{'type':'boolean'},'next':" COUNT "}},"
    "'RedactRequest':{'type':'object','additionalProperties':false,'required':['name'],"
    "'properties':{'name':{'type':'string','description':'A value, or its name in entries.'}}},"
    "'Redaction':{'type':'object','required':['names'],'properties':{'names':" COUNT "}}";

void openapi_put(struct buf *out, const char *text)
{
    const char *end;
    while ((end = strchr(text, '\'')) != NULL) {
        (void)buf_add(out, text, (size_t)(end - text));
        (void)buf_add_char(out, '"');
        text = end + 1;
    }
    (void)buf_add_c(out, text);
}

void openapi_fixed_components(struct buf *out, const struct openapi_reader *reader)
{
    openapi_put(out, components);
    openapi_put(out, text_if(reader->agent, agent_parameter));
    openapi_put(out, call_parameters);
    openapi_put(out, events_parameters);
    openapi_put(out, mcp_parameters);
    openapi_put(out, text_if(reader->admin, keys_parameters));
    openapi_put(out, text_if(reader->admin, audit_parameters));
    openapi_put(out, responses);
    openapi_put(out, schemas);
    openapi_put(out, events_schemas);
    openapi_put(out, text_if(reader->admin, key_request_schemas));
    openapi_put(out, text_if(reader->admin, key_change_schemas));
    openapi_put(out, text_if(reader->admin, keys_schemas));
    openapi_put(out, text_if(reader->admin, audit_schemas));
}

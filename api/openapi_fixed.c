/* SPDX-License-Identifier: MIT */
/* openapi_fixed.c - what of /openapi.json does not depend on the tools. */
#include "openapi_fixed.h"

#define JSON_BODY(schema) "'content':{'application/json':{'schema':" schema "}}"
#define ANSWER(status, text, schema)                                                           \
    "'" status "':{'description':'" text "'," JSON_BODY(schema) "}"
#define STRING "{'type':'string'}"
#define TIME "{'type':'string','format':'date-time'}"
#define OBJECT "{'type':'object'}"
#define NAME_PATTERN "[A-Za-z0-9._@-]{1,64}"
#define NAMES                                                                                  \
    "{'type':'string','pattern':'^[A-Za-z][A-Za-z0-9_]{0,63}(,[A-Za-z][A-Za-z0-9_]{0,63})*$'}"
#define NAME "{'type':'string','pattern':'^" NAME_PATTERN "$'}"
#define SPACE "{'type':'string','pattern':'^~?" NAME_PATTERN "$'}"
#define ERROR_RESPONSE(name, text)                                                             \
    ",'" name "':{'description':'" text "'," JSON_BODY(OPENAPI_REF("schemas/Failure")) "}"

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

static const char other_parameters[] =
    "'Space':{'name':'X-Notegate-Space','in':'header','description':'The space to work in.',"
    "'schema':" SPACE "},"
    "'Mode':{'name':'X-Notegate-Mode','in':'header','description':'A lower mode than that of "
    "the key.','schema':" OPENAPI_REF(
        "schemas/Mode") "},"
                        "'IdempotencyKey':{'name':'Idempotency-Key','in':'header','description'"
                        ":'A write with a "
                        "key is done once; the repeat gets the first "
                        "answer.','schema':{'type':'string',"
                        "'pattern':'^[!-~]{1,255}$'}},"
                        "'Format':{'name':'format','in':'query','description':'The form of the "
                        "definitions.',"
                        "'schema':" OPENAPI_REF("schemas/Format") "}},";

static const char responses[] =
    "'responses':{'Failure':{'description':'The call failed; `code` says how.','headers':{"
    "'X-Request-Id':{'description':'To be found in the log.','schema':" STRING
    "}}," JSON_BODY(OPENAPI_REF("schemas/Failure")) "}" ERROR_RESPONSE(
        "BadRequest", "The request or an argument is not valid.")
        ERROR_RESPONSE("Unauthorized", "A key is needed, or the key is not valid.")
            ERROR_RESPONSE("Forbidden",
                           "The role, mode, space or list of tools of the key forbids it.")
                ERROR_RESPONSE("NotFound", "There is no such thing.") ERROR_RESPONSE(
                    "Conflict", "It has changed since the revision that was given, or exists.")
                    ERROR_RESPONSE("TooLarge",
                                   "The body, a text or the result is over its limit.")
                        ERROR_RESPONSE("TooManyRequests",
                                       "The rate of the key is used up; see Retry-After.")
                            ERROR_RESPONSE("Unavailable",
                                           "The gateway or its database takes no call now.")
                                ERROR_RESPONSE("StorageFull",
                                               "There is no space left for it.") "},";

static const char schemas[] =
    "'schemas':{'Mode':{'type':'string','enum':['ask','edit','agent']},"
    "'Format':{'type':'string','default':'mcp','enum':['mcp','openai','openai-responses',"
    "'anthropic','gemini']},"
    "'Tools':{'type':'object','required':['tools'],'properties':{'tools':{'type':'array',"
    "'items':" OBJECT "}}},"
    "'Failure':{'type':'object','required':['error','code','message'],'properties':{"
    "'error':{'type':'boolean','const':true},'code':{'type':'string','examples':["
    "'INVALID_INPUT','NOT_FOUND','CONFLICT']},'message':" STRING ",'hint':" STRING ","
    "'details':" OBJECT "}},"
    "'Content':{'type':'object','required':['type'],'properties':{'type':{'type':'string',"
    "'enum':['text','image','audio','resource','resource_link']}}}";

static const char tools_paths[] =
    "'/v1/tools':{'get':{'operationId':'listTools','summary':'The tools the caller may "
    "call','description':'With the schemas of their arguments and results.',"
    "'tags':['gateway'],'parameters':[" OPENAPI_REF(
        "parameters/Format") "],'responses':{" ANSWER("200",
                                                      "The definitions, in the form asked for.",
                                                      "{'anyOf':[" OPENAPI_REF(
                                                          "schemas/Tools") ",{'type':'array','"
                                                                           "items':" OBJECT
                                                                           "}]}") ",'304':{'"
                                                                                  "description'"
                                                                                  ":'Not "
                                                                                  "changed "
                                                                                  "since the "
                                                                                  "ETag in "
                                                                                  "If-None-"
                                                                                  "Match.'}"
                                                                                  "," OPENAPI_READ_ERRORS
                                                                                  "}}},"
                                                                                  "'/v1/tools/"
                                                                                  "{name}':{'"
                                                                                  "parameters':"
                                                                                  "[{'name':'"
                                                                                  "name','in':'"
                                                                                  "path','"
                                                                                  "required':"
                                                                                  "true,"
                                                                                  "'description"
                                                                                  "':'The name "
                                                                                  "of a "
                                                                                  "tool.','"
                                                                                  "schema':{'"
                                                                                  "type':'"
                                                                                  "string','"
                                                                                  "pattern':"
                                                                                  "'^[A-Za-z]["
                                                                                  "A-Za-z0-9_]*"
                                                                                  "$'}}],"
                                                                                  "'get':{'"
                                                                                  "operationId'"
                                                                                  ":'showTool',"
                                                                                  "'summary':'"
                                                                                  "The "
                                                                                  "definition "
                                                                                  "of a "
                                                                                  "tool','tags'"
                                                                                  ":['gateway'"
                                                                                  "]" OPENAPI_DEFINITION
                                                                                  "},"
                                                                                  "'post':{'"
                                                                                  "operationId'"
                                                                                  ":'callTool',"
                                                                                  "'summary':'"
                                                                                  "Call a tool "
                                                                                  "by its "
                                                                                  "name','tags'"
                                                                                  ":['gateway']"
                                                                                  ","
                                                                                  "'requestBody"
                                                                                  "':{'"
                                                                                  "required':"
                                                                                  "true,'"
                                                                                  "description'"
                                                                                  ":'Its "
                                                                                  "arguments.'"
                                                                                  "," JSON_BODY(
                                                                                      OBJECT) "},"
                                                                                              "'responses':{" ANSWER(
                                                                                                  "200",
                                                                                                  "The answer of the tool.",
                                                                                                  OBJECT) "," OPENAPI_READ_ERRORS
                                                                                                          "," OPENAPI_RESPONSE("409", "Conflict") "," OPENAPI_RESPONSE(
                                                                                                              "413",
                                                                                                              "TooLarge") "," OPENAPI_RESPONSE("507",
                                                                                                                                               "StorageFull") "}}}";

static const char events_path[] =
    ",'/v1/events':{'get':{'operationId':'followChanges','summary':'Every change the caller "
    "may "
    "see, as server-sent events','description':'`id` is the sequence number, `event` is "
    "`change` (or `closed`, the last one, with the reason), `data` is one JSON object.',"
    "'tags':['events'],'parameters':[{'name':'since','in':'query','description':'Events after "
    "this one; without a position: from now on.','schema':{'type':'integer','minimum':0}},"
    "{'name':'collection','in':'query','description':'Only these, with commas.',"
    "'schema':" NAMES "},"
    "{'name':'tool','in':'query','description':'Only what these tools changed, with commas.',"
    "'schema':" NAMES "},"
    "{'name':'Last-Event-ID','in':'header','description':'The position to resume at; beats "
    "since.','schema':" STRING "},";

static const char events_answers[] = OPENAPI_REF(
    "parameters/Space") "],'responses':{'200':{'description':'Events, until one "
                        "side ends.','content':{'text/event-stream':{'schema':" STRING
                        "}}}," OPENAPI_READ_ERRORS "}}}";

static const char operation_paths[] =
    ",'/v1/reload':{'post':{'operationId':'reload','summary':'Read the configuration "
    "again',"
    "'description':'For the role admin. Answers what holds now and what needs a "
    "restart.',"
    "'tags':['operation'],'responses':{" ANSWER(
        "200", "It was read.",
        "{'type':'object','required':['changes','restart_needed'],'properties':{'"
        "changes':{"
        "'type':'array','items':{'type':'object','properties':{'key':" STRING ",'holds':{"
        "'type':'boolean'},'message':" STRING "}}},'restart_needed':{'type':'boolean'}}"
        "}") "," OPENAPI_READ_ERRORS "}}},"
             "'/"
             "healthz':{'get':{'operationId':'"
             "healthz','summary':'Is the process "
             "alive?',"
             "'description':'Answers whatever "
             "the "
             "Host.','tags':['operation'],'"
             "security':[],"
             "'responses':{" ANSWER("200", "Yes.", OBJECT) "," OPENAPI_RESPONSE(
                 "400",
                 "BadRequ"
                 "est") "," OPENAPI_RESPONSE("default",
                                             "Failure") "}}},"
                                                        "'/"
                                                        "readyz':{'get':{'"
                                                        "operationId':'"
                                                        "readyz','summary':'"
                                                        "Can it take calls?',"
                                                        "'description':'"
                                                        "Answers whatever "
                                                        "the "
                                                        "Host.','tags':['"
                                                        "operation'],'"
                                                        "security':[],"
                                                        "'responses':"
                                                        "{" ANSWER("200", "Yes.", OBJECT) "," ANSWER("503", "Not now.", OBJECT) "," OPENAPI_RESPONSE(
                                                            "400",
                                                            "BadReques"
                                                            "t") "," OPENAPI_RESPONSE("defaul"
                                                                                      "t",
                                                                                      "Failur"
                                                                                      "e") "}}"
                                                                                           "},"
                                                                                           "'/"
                                                                                           "me"
                                                                                           "tr"
                                                                                           "ic"
                                                                                           "s'"
                                                                                           ":{"
                                                                                           "'g"
                                                                                           "et"
                                                                                           "':"
                                                                                           "{'"
                                                                                           "op"
                                                                                           "er"
                                                                                           "at"
                                                                                           "io"
                                                                                           "nI"
                                                                                           "d'"
                                                                                           ":'"
                                                                                           "me"
                                                                                           "tr"
                                                                                           "ic"
                                                                                           "s'"
                                                                                           ",'"
                                                                                           "su"
                                                                                           "mm"
                                                                                           "ar"
                                                                                           "y'"
                                                                                           ":'"
                                                                                           "Nu"
                                                                                           "mb"
                                                                                           "er"
                                                                                           "s "
                                                                                           "fo"
                                                                                           "r "
                                                                                           "Pr"
                                                                                           "om"
                                                                                           "et"
                                                                                           "he"
                                                                                           "us"
                                                                                           "',"
                                                                                           "'t"
                                                                                           "ag"
                                                                                           "s'"
                                                                                           ":["
                                                                                           "'o"
                                                                                           "pe"
                                                                                           "ra"
                                                                                           "ti"
                                                                                           "on"
                                                                                           "']"
                                                                                           ",'"
                                                                                           "re"
                                                                                           "sp"
                                                                                           "on"
                                                                                           "se"
                                                                                           "s'"
                                                                                           ":{"
                                                                                           "'2"
                                                                                           "00"
                                                                                           "':"
                                                                                           "{'"
                                                                                           "de"
                                                                                           "sc"
                                                                                           "ri"
                                                                                           "pt"
                                                                                           "io"
                                                                                           "n'"
                                                                                           ":'"
                                                                                           "Th"
                                                                                           "e "
                                                                                           "te"
                                                                                           "xt"
                                                                                           " f"
                                                                                           "or"
                                                                                           "ma"
                                                                                           "t."
                                                                                           "',"
                                                                                           "'c"
                                                                                           "on"
                                                                                           "te"
                                                                                           "nt"
                                                                                           "':"
                                                                                           "{"
                                                                                           "'t"
                                                                                           "ex"
                                                                                           "t/"
                                                                                           "pl"
                                                                                           "ai"
                                                                                           "n'"
                                                                                           ":{"
                                                                                           "'s"
                                                                                           "ch"
                                                                                           "em"
                                                                                           "a'"
                                                                                           ":" STRING
                                                                                           "}}"
                                                                                           "}"
                                                                                           "," OPENAPI_READ_ERRORS
                                                                                           "}}"
                                                                                           "}";

/* Only in what the role admin is shown. */
static const char keys_paths[] =
    ",'/v1/keys':{'get':{'operationId':'listKeys','summary':'The keys in "
    "force','description':'For the role admin.',"
    "'tags':['admin'],'parameters':[{'name':'all','in':'query','description':'Revoked and "
    "expired ones too.','schema':{'type':'boolean','default':false}},{'name':'name','in':"
    "'query','description':'Only those of this agent, and the one with this "
    "id.','schema':" STRING "}],'responses':{" ANSWER(
        "200", "The keys, without their secrets.",
        OPENAPI_REF(
            "schemas/Keys")) "," OPENAPI_READ_ERRORS "}},"
                             "'post':{'operationId':'addKey','summary':'Make a key for an "
                             "agent','tags':['admin'],"
                             "'requestBody':{'required':true," JSON_BODY(OPENAPI_REF(
                                 "schemas/KeyRequest")) "},"
                                                        "'responses':{" ANSWER(
                                                            "201",
                                                            "The key. Its text is in no other "
                                                            "answer.",
                                                            OPENAPI_REF(
                                                                "schemas/Key")) "," OPENAPI_READ_ERRORS
                                                                                "," OPENAPI_RESPONSE("413", "TooLarge") "," OPENAPI_RESPONSE(
                                                                                    "507",
                                                                                    "StorageFul"
                                                                                    "l") "}}},"
                                                                                         "'/v1/"
                                                                                         "keys/"
                                                                                         "{id}'"
                                                                                         ":{'"
                                                                                         "param"
                                                                                         "eters"
                                                                                         "':[{'"
                                                                                         "name'"
                                                                                         ":'id'"
                                                                                         ",'in'"
                                                                                         ":'"
                                                                                         "path'"
                                                                                         ",'"
                                                                                         "requi"
                                                                                         "red':"
                                                                                         "true,"
                                                                                         "'desc"
                                                                                         "ripti"
                                                                                         "on':"
                                                                                         "'The "
                                                                                         "id "
                                                                                         "of a "
                                                                                         "key.'"
                                                                                         ",'"
                                                                                         "schem"
                                                                                         "a':{'"
                                                                                         "type'"
                                                                                         ":'"
                                                                                         "strin"
                                                                                         "g','"
                                                                                         "patte"
                                                                                         "rn':'"
                                                                                         "^[a-"
                                                                                         "z0-9]"
                                                                                         "{12}$"
                                                                                         "'}}],"
                                                                                         "'get'"
                                                                                         ":{'"
                                                                                         "opera"
                                                                                         "tionI"
                                                                                         "d':'"
                                                                                         "showK"
                                                                                         "ey','"
                                                                                         "summa"
                                                                                         "ry':'"
                                                                                         "One "
                                                                                         "key',"
                                                                                         "'tags"
                                                                                         "':['"
                                                                                         "admin"
                                                                                         "'],'"
                                                                                         "respo"
                                                                                         "nses'"
                                                                                         ":"
                                                                                         "{" ANSWER(
                                                                                             "2"
                                                                                             "0"
                                                                                             "0",
                                                                                             "T"
                                                                                             "h"
                                                                                             "e"
                                                                                             " "
                                                                                             "k"
                                                                                             "e"
                                                                                             "y"
                                                                                             ","
                                                                                             " "
                                                                                             "w"
                                                                                             "i"
                                                                                             "t"
                                                                                             "h"
                                                                                             "o"
                                                                                             "u"
                                                                                             "t"
                                                                                             " "
                                                                                             "i"
                                                                                             "t"
                                                                                             "s"
                                                                                             " "
                                                                                             "s"
                                                                                             "e"
                                                                                             "c"
                                                                                             "r"
                                                                                             "e"
                                                                                             "t"
                                                                                             ".",
                                                                                             OPENAPI_REF(
                                                                                                 "schemas/Key")) "," OPENAPI_READ_ERRORS
                                                                                                                 "}},"
                                                                                                                 "'delete':{'operationId':'revokeKey','summary':'End a key, at once','description':'For the role admin. The last one in force only with force: else 409.','tags':['admin'],"
                                                                                                                 "'parameters':[{'name':'force','in':'query','description':'Also the last key in force.','schema':{'type':'boolean','default':false}}],"
                                                                                                                 "'responses':{" ANSWER(
                                                                                                                     "200",
                                                                                                                     "The key as it was.",
                                                                                                                     OPENAPI_REF(
                                                                                                                         "schemas/Key")) "," OPENAPI_READ_ERRORS
                                                                                                                                         "," OPENAPI_RESPONSE("409", "Conflict") "," OPENAPI_RESPONSE(
                                                                                                                                             "507",
                                                                                                                                             "StorageFull") "}}}";

static const char keys_schemas[] =
    ",'Role':{'type':'string','enum':['reader','writer','admin']},"
    "'KeyRequest':{'type':'object','additionalProperties':false,'required':['agent'],"
    "'properties':{'agent':" NAME ",'role':" OPENAPI_REF("schemas/Role") ",'mode':" OPENAPI_REF(
        "schemas/Mode") ",'run':{'type':'boolean','description':'May run code. Only a "
                        "caller that may adds such a "
                        "key.'},'spaces':{'type':'array','maxItems':64,'items':" SPACE
                        "},'tools':{'type':'array','minItems':1,'maxItems':256,'items':" STRING
                        "},"
                        "'rate':{'anyOf':[{'type':'number','minimum':0.001,'maximum':1000000},{"
                        "'type':'string',"
                        "'pattern':'^[1-9][0-9]{0,3}(/"
                        "(s|sec|m|min|h))?$'}],'description':'Calls a second, or 5/s, "
                        "100/min.'},'note':{'type':'string','maxLength':200,"
                        "'pattern':'^[^\\\\u0000-\\\\u001f\\\\u007f-"
                        "\\\\u009f\\\\u2028\\\\u2029]*$',"
                        "'description':'What the key is for: one "
                        "line.'},'expires':{'type':'string','description':'A time, or 30d "
                        "for 30 days from now.',"
                        "'pattern':'^([1-9][0-9]{0,3}(min|h|d)|2[0-9]{3}-[01][0-9]-[0-3][0-9]("
                        "T.*)?)$'}}},"
                        "'Key':{'type':'object','required':['id','agent','role','mode','run','"
                        "spaces','created',"
                        "'state'],'properties':{'key':{'type':'string','description':'The text "
                        "to send as bearer; "
                        "only in the answer that made it.'},'id':" STRING ",'agent':" STRING
                        ",'role':" OPENAPI_REF("schemas/Role") ",'mode':" OPENAPI_REF(
                            "schemas/Mode") ",'run':{'type':"
                                            "'boolean'},'spaces':{'type':'array','items'"
                                            ":" STRING
                                            "},'tools':{'type':'array','items':" STRING
                                            "},'rate':{'type':'number'},'created':" TIME
                                            ",'last_used':" TIME ",'made_by':" STRING
                                            ",'note':" STRING ",'expires':" TIME
                                            ",'revoked':" TIME
                                            ",'state':{'type':'string','enum':['live','revoked'"
                                            ",'expired']}}},"
                                            "'Keys':{'type':'object','required':['keys'],'"
                                            "properties':{'keys':{'type':'array','items'"
                                            ":" OPENAPI_REF("schemas/Key") "}}}";

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

void openapi_fixed_paths(struct buf *out, bool admin, bool with_agent)
{
    openapi_put(out, tools_paths);
    openapi_put(out, events_path);
    openapi_put(out, with_agent ? OPENAPI_REF("parameters/Agent") "," : "");
    openapi_put(out, events_answers);
    openapi_put(out, operation_paths);
    openapi_put(out, admin ? keys_paths : "");
}

void openapi_fixed_components(struct buf *out, bool admin, bool with_agent)
{
    openapi_put(out, components);
    openapi_put(out, with_agent ? agent_parameter : "");
    openapi_put(out, other_parameters);
    openapi_put(out, responses);
    openapi_put(out, schemas);
    openapi_put(out, admin ? keys_schemas : "");
}

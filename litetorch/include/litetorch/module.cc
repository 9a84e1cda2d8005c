/* module.cc - linked into every candidate's .so: the table of its functions, and the end of every exception. */
#include "litetorch/module.h"

namespace lt {

const struct lt_api *api;

LT_CALLERS(template)

struct entry {
    std::string name, doc, returns;
    std::vector<std::string> types, names, strings;
    std::vector<lt_value> defaults;
    std::vector<bool> has_default;
    std::vector<lt_param> params;
    size_t n_args = 0;
    void *self;
    int (*invoke)(void *, const lt_value *, lt_value *, char *, size_t);
};

static std::vector<entry *> &entries()
{
    static std::vector<entry *> all;
    return all;
}

static std::vector<void (*)()> &inits()
{
    static std::vector<void (*)()> all;
    return all;
}

init_row::init_row(void (*f)())
{
    inits().push_back(f);
}

void put(char *types, const char *c)
{
    size_t n = strlen(types), m = strlen(c);

    if (n + m + 1 > MAX_TYPES)
        throw c10::Error("m.def: a function has too many parameters");
    memcpy(types + n, c, m + 1);
}

entry *define(const char *name, const char *returns, const char *types, void *self,
              int (*invoke)(void *, const lt_value *, lt_value *, char *, size_t))
{
    entry *e = new entry;

    e->name = name, e->returns = returns, e->self = self, e->invoke = invoke;
    for (const char *p = types; *p; p += strcspn(p, ",") + 1)
        e->types.push_back(std::string(p, strcspn(p, ",")));
    e->names.resize(e->types.size());
    e->strings.resize(e->types.size());
    e->defaults.resize(e->types.size());
    e->has_default.resize(e->types.size());
    entries().push_back(e);
    return e;
}

void set_doc(entry *e, const char *doc)
{
    e->doc = doc;
}

void set_arg(entry *e, const char *name, bool has_default, const lt_value &v, const char *text)
{
    size_t i = e->n_args++;

    if (i >= e->types.size())
        throw c10::Error("m.def: more py::arg than parameters");
    e->names[i] = name, e->has_default[i] = has_default, e->defaults[i] = v, e->strings[i] = text;
}

std::string operator_name(const std::string &space, const std::string &schema)
{
    std::string name = schema.substr(0, schema.find_first_of("(. "));
    size_t own = name.rfind("::");

    return space + "::" + (own == std::string::npos ? name : name.substr(own + 2));
}

const std::string &operator_schema(const std::string &name, const std::string &schema)
{
    static std::vector<std::pair<std::string, std::string>> all;
    static const std::string none;

    if (schema.find('(') != std::string::npos)
        all.push_back({name, schema});
    for (size_t i = all.size(); i-- > 0;)
        if (all[i].first == name)
            return all[i].second;
    return none;
}

bool is_device_key(const std::string &key)
{
    return key.empty() || key == "CUDA" || key == "PrivateUse1" || key == "CatchAll" ||
           key.rfind("Composite", 0) == 0;
}

/* The value of a default in a schema: a number, True or False, or None. False: another one. */
static bool default_of(const std::string &text, const std::string &type, lt_value *ret)
{
    char *end;
    double v = strtod(text.c_str(), &end);

    *ret = {LT_NONE, 0, {0}, 0};
    if (text == "None")
        return true;
    if (text == "True" || text == "False")
        *ret = arg(text == "True").v;
    else if (*end || text.empty())
        return false;
    else
        *ret = type.find('d') == std::string::npos ? arg(int64_t(v)).v : arg(v).v;
    return true;
}

/* One parameter of a schema, "Tensor(a!) x" or "int n=3". */
static void describe_parameter(entry *e, std::string p)
{
    size_t is = p.find('=');
    std::string text = is == std::string::npos ? "" : p.substr(is + 1);
    lt_value v;

    p = p.substr(0, is);
    p.erase(p.find_last_not_of(' ') + 1);
    p.erase(0, p.find_first_not_of(' '));
    if (p == "*" || p.empty() || e->n_args >= e->types.size())
        return;
    bool has = default_of(text, e->types[e->n_args], &v);
    set_arg(e, p.substr(p.find_last_of(" )") + 1).c_str(), has, v, "");
}

void describe(entry *e, const std::string &schema)
{
    size_t at = schema.find('('), deep = 0, from = at + 1;

    for (size_t i = at; at != std::string::npos && i < schema.size(); i++) {
        deep += schema[i] == '(' || schema[i] == '[';
        deep -= schema[i] == ')' || schema[i] == ']';
        if ((schema[i] == ',' && deep == 1) || !deep) {
            describe_parameter(e, schema.substr(from, i - from));
            from = i + 1;
        }
        if (!deep)
            break;
    }
}

int caught(char *message, size_t max)
{
    int kind = LT_RUNTIME_ERROR;
    const char *what = "Caught an unknown exception!";
    try {
        throw;
    } catch (const c10::Error &e) {
        snprintf(message, max, "%s", e.what());
        return e.kind;
    } catch (const std::bad_alloc &e) {
        kind = LT_MEMORY_ERROR;
        snprintf(message, max, "%s", e.what());
        return kind;
    } catch (const std::out_of_range &e) {
        snprintf(message, max, "%s", e.what());
        return LT_INDEX_ERROR;
    } catch (const std::overflow_error &e) {
        snprintf(message, max, "%s", e.what());
        return LT_OVERFLOW_ERROR;
    } catch (const std::logic_error &e) { // invalid_argument, domain_error, length_error
        snprintf(message, max, "%s", e.what());
        return LT_VALUE_ERROR;
    } catch (const std::range_error &e) {
        snprintf(message, max, "%s", e.what());
        return LT_VALUE_ERROR;
    } catch (const std::exception &e) {
        snprintf(message, max, "%s", e.what());
        return kind;
    } catch (...) {
        snprintf(message, max, "%s", what);
        return kind;
    }
}

static void finish(entry *e)
{
    for (size_t i = 0; i < e->types.size(); i++) {
        lt_param p = {e->names[i].empty() ? nullptr : e->names[i].c_str(), e->types[i].c_str(),
                      e->has_default[i] ? 1 : 0, e->defaults[i]};
        if (p.value.tag == LT_STRING) {
            p.value.u.p = const_cast<char *>(e->strings[i].c_str());
            p.value.n = int64_t(e->strings[i].size());
        }
        e->params.push_back(p);
    }
}

} // namespace lt

extern "C" const struct lt_module *lt_module_open(const struct lt_api *api)
{
    static struct lt_module m;
    static std::vector<lt_function> table;

    if (api->version != LT_ABI)
        return nullptr;
    lt::api = api;
    if (m.version)
        return &m;
    for (auto f : lt::inits())
        f();
    for (lt::entry *e : lt::entries()) {
        lt::finish(e);
        table.push_back({e->name.c_str(), e->doc.c_str(), e->returns.c_str(), int32_t(e->params.size()), 0,
                         e->params.data(), e->self, e->invoke});
    }
    m = {LT_ABI, int32_t(table.size()), table.data(), ""};
    return &m;
}

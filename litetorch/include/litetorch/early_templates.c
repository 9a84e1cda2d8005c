/* early_templates.c - a plugin of g++ for precompiled headers: '#pragma litetorch instantiate' makes the templates
 * that the text so far asks for. g++ itself waits for the end of the unit, leaves them out of a precompiled header,
 * and makes them again in every unit that reads it: five sixths of an empty unit's time behind prefix.h.
 *
 * The compile stage builds it with the host's compiler (build_parts.c). It names what it needs by symbols, which g++
 * exports since version 4.8, so no header of g++'s is needed; a compiler that lacks one refuses the plugin, and the
 * header is precompiled without. */

/* g++ looks for this name before it loads a plugin. */
int plugin_is_GPL_compatible;

/* gcc-plugin.h and c-family/c-pragma.h, the latter's and cp/cp-tree.h's under their mangled names. */
extern int get_named_event_id(const char *name, int insert);
extern void register_callback(const char *plugin, int event, void (*f)(void *data, void *user), void *user);
extern void _Z17c_register_pragmaPKcS0_PFvP10cpp_readerE(const char *space, const char *name, void (*f)(void *reader));
extern void _Z29instantiate_pending_templatesi(int retries);

static void early_instantiate(void *reader)
{
    (void)reader;
    _Z29instantiate_pending_templatesi(0);
}

static void early_register_pragma(void *data, void *user)
{
    (void)data, (void)user;
    _Z17c_register_pragmaPKcS0_PFvP10cpp_readerE("litetorch", "instantiate", early_instantiate);
}

int plugin_init(const void *info, const void *version)
{
    int event = get_named_event_id("PLUGIN_PRAGMAS", 0);

    (void)info, (void)version;
    if (event < 0)
        return 1;
    register_callback("early_templates", event, early_register_pragma, 0);
    return 0;
}

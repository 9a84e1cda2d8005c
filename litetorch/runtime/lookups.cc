/* lookups.cc - which functions of loaded libraries a candidate looks up by name from Python (ctypes). The symbols of a
 * candidate's extension are audited when it is built (src/eval/build_audit.h); this is the other way to cuBLAS, to the
 * runtime's copies without their wrappers, and to the harness's own switches. What ends in a forbidden name becomes a
 * finding. An audit hook of the interpreter sees every lookup, cannot be taken off, and its record lies outside Python.
 *
 * The harness looks names up too. A lookup is the candidate's if foreign code was running (lt_foreign) or if the line
 * that asks is not in one of the harness's files. */
#include <atomic>
#include <cstring>
#include <string>

#include "process.h"

/* Python's interface, as far as needed: the library must load where there is no Python. */
struct _object;
struct _frame;
extern "C" {
#define WEAK __attribute__((weak))
WEAK int PySys_AddAuditHook(int (*)(const char *, _object *, void *), void *);
WEAK long PyTuple_Size(_object *);
WEAK _object *PyTuple_GetItem(_object *, long);
WEAK const char *PyUnicode_AsUTF8(_object *);
WEAK _object *PyErr_Occurred(void);
WEAK void PyErr_Clear(void);
WEAK _frame *PyEval_GetFrame(void);
WEAK _object *PyFrame_GetCode(_frame *);
WEAK _frame *PyFrame_GetBack(_frame *);
WEAK void Py_IncRef(_object *);
WEAK _object *PyObject_GetAttrString(_object *, const char *);
WEAK void Py_DecRef(_object *);
}

namespace {

std::string harness; // folder
std::atomic<int> foreign{0};
std::atomic<bool> hooked{false};

bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* What a library of mathematics, or PyTorch's own C++, answers to. */
bool computes(const char *s)
{
    static const char *const list[] = {"cublas", "cudnn", "cufft", "cusolver", "cusparse", "curand", "nccl", "nvrtc",
                                       "nvJitLink", "cutensor", "cblas_", "LAPACKE_", "sgemm", "dgemm", "hgemm", "mkl_",
                                       "vsR", "vsE", "openblas_", "dnnl_", "magma_", "_ZN2at", "_ZNK2at", "_ZN5torch",
                                       "aoti_torch_"};

    for (const char *l : list)
        if (begins(s, l))
            return true;
    return false;
}

/* The device behind the wrappers' back, the harness's switches, ways to load or change code. */
bool forbidden(const char *s)
{
    static const char *const list[] = {"cuda", "__cuda", "simt_", "sim_", "lt_"};
    static const char *const whole[] = {"mmap", "mmap64", "mprotect", "mremap", "dlopen", "dlsym", "dlvsym", "syscall",
                                        "ptrace", "process_vm_readv", "process_vm_writev", "fork", "vfork", "clone",
                                        "execve", "system", "popen", "pthread_create"};

    if (begins(s, "lt_module_"))
        return false; // an extension is being loaded
    for (const char *l : list)
        if (begins(s, l))
            return true;
    for (const char *w : whole)
        if (!strcmp(s, w))
            return true;
    return s[0] == 'c' && s[1] == 'u' && s[2] >= 'A' && s[2] <= 'Z';
}

/* The last text among the arguments of an event; they may be nested once. */
std::string last_text(_object *args, int depth = 0)
{
    long n = PyTuple_Size(args);

    if (n < 0)
        PyErr_Clear();
    for (long i = n - 1; i >= 0; i--) {
        _object *item = PyTuple_GetItem(args, i);
        const char *text = item ? PyUnicode_AsUTF8(item) : nullptr;
        if (text)
            return text;
        PyErr_Clear();
        std::string inner = depth < 2 && item ? last_text(item, depth + 1) : "";
        if (!inner.empty())
            return inner;
    }
    return "";
}

std::string file_of(_frame *frame)
{
    _object *code = PyFrame_GetCode(frame), *file = code ? PyObject_GetAttrString(code, "co_filename") : nullptr;
    const char *text = file ? PyUnicode_AsUTF8(file) : nullptr;
    std::string out = text ? text : "";

    PyErr_Clear();
    if (file)
        Py_DecRef(file);
    if (code)
        Py_DecRef(code);
    return out;
}

bool ends(const std::string &s, const std::string &with)
{
    return s.size() >= with.size() && !s.compare(s.size() - with.size(), with.size(), with);
}

/* The line that asks, behind ctypes' own. */
bool asked_by_harness()
{
    auto *frame = PyEval_GetFrame();
    std::string file;

    Py_IncRef(reinterpret_cast<_object *>(frame));
    while (frame && ends(file = file_of(frame), "ctypes/__init__.py")) {
        auto *back = PyFrame_GetBack(frame);
        Py_DecRef(reinterpret_cast<_object *>(frame));
        frame = back;
    }
    Py_DecRef(reinterpret_cast<_object *>(frame)); // NULL is fine for both
    return frame && begins(file.c_str(), harness.c_str());
}

int hook(const char *event, _object *args, void *)
{
    if (!begins(event, "ctypes.dlsym") || PyErr_Occurred())
        return 0;
    std::string name = last_text(args);
    bool library = computes(name.c_str());

    if (!library && !forbidden(name.c_str()))
        return 0;
    if (foreign == 0 && asked_by_harness())
        return 0;
    lt_add_finding(library ? "library_call" : "forbidden_symbol", name.c_str(),
                   (name + " was looked up from Python").c_str());
    return 0;
}

} // namespace

extern "C" {

void lt_lookups_watch(const char *harness_folder)
{
    harness = harness_folder;
    if (PySys_AddAuditHook && !hooked.exchange(true))
        PySys_AddAuditHook(hook, nullptr);
}

void lt_foreign(int on)
{
    foreign += on ? 1 : -1;
}

} // extern "C"

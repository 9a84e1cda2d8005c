/* trace.cc - which ATen operators a candidate's process dispatches: a RecordFunction callback, which is global, so
 * threads that existed before and threads that the candidate starts are covered.
 *
 * Counted apart, by a prefix: "paused::" while the harness asked for a pause (its own copies; nothing is left out,
 * because anybody can ask), "captured::" in addition to the plain name while a stream records a graph. Not counted:
 * operators on meta tensors, which compute nothing, and those that a question with a yes or no for an answer is
 * made of. */
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "process.h"

namespace {

std::mutex trace_lock;
std::map<std::string, long> trace_counts;
std::atomic<bool> trace_on{false};
thread_local int trace_paused;

/* Copies of more than a few numbers between host and device: "copy::to_host", "copy::to_device".
 * aten::copy_(self, src) and aten::_to_copy(self, *, dtype, layout, device, ...) are the two ways that torch has. */
const char *crossing(const std::string &op, const at::RecordFunction &fn)
{
    bool copy = op == "aten::copy_", from_cuda, to_cuda;

    if (!copy && op != "aten::_to_copy")
        return nullptr;
    auto in = fn.inputs();
    if (in.size() < (copy ? 2u : 4u) || !in[0].isTensor())
        return nullptr;
    if (copy ? !in[1].isTensor() : !in[3].isDevice())
        return nullptr;
    const at::Tensor &from = copy ? in[1].toTensor() : in[0].toTensor();
    if (!from.defined() || from.numel() <= 16)
        return nullptr;
    from_cuda = from.is_cuda();
    to_cuda = copy ? in[0].toTensor().is_cuda() : in[3].toDevice().is_cuda();
    return from_cuda == to_cuda ? nullptr : to_cuda ? "copy::to_device" : "copy::to_host";
}

/* ---- questions: equal and allclose, and what torch makes them of ---- */

const c10::OperatorName questions[] = {{"aten::equal", ""}, {"aten::allclose", ""}};
const c10::OperatorName parts[] = {
    {"aten::isclose", ""}, {"aten::eq", "Tensor"}, {"aten::ne", "Scalar"}, {"aten::ne", "Tensor"}, {"aten::abs", ""},
    {"aten::abs", "out"}, {"aten::mul", "Scalar"}, {"aten::mul", "Tensor"}, {"aten::add", "Scalar"},
    {"aten::add", "Tensor"}, {"aten::sub", "Tensor"}, {"aten::isfinite", ""}, {"aten::isnan", ""},
    {"aten::le", "Tensor"}, {"aten::__iand__", "Tensor"}, {"aten::__ior__", "Tensor"}, {"aten::bitwise_and_", "Tensor"},
    {"aten::bitwise_or_", "Tensor"}, {"aten::all", ""}};
/* While a question is asked on this thread: of each operator under way, is it the question or a part of it? */
thread_local std::vector<bool> asked;

template <size_t N>
bool among(const c10::OperatorName &name, const c10::OperatorName (&list)[N])
{
    for (const auto &n : list)
        if (n == name)
            return true;
    return false;
}

/* Adds which kernels are registered for an operator. Those for meta tensors come with parts of torch that are imported
 * late, and compute nothing. */
void add_registered(std::string &out, const c10::OperatorName &name)
{
    auto op = c10::Dispatcher::singleton().findSchema(name);
    std::istringstream lines(op ? op->dumpState() : "");

    for (std::string line; std::getline(lines, line); )
        if (line.compare(0, 4, "Meta"))
            out += line + "\n";
}

std::string registered()
{
    std::string out;

    for (const auto &n : questions)
        add_registered(out, n);
    for (const auto &n : parts)
        add_registered(out, n);
    return out;
}

std::string registered_before; // foreign code ran

template <class F>
bool each_tensor(const at::RecordFunction &fn, F f) // false as soon as f says so
{
    for (const auto &v : fn.inputs()) {
        if (v.isTensor() && v.toTensor().defined() && !f(v.toTensor()))
            return false;
        if (v.isTensorList())
            for (const at::Tensor &t : v.toTensorVector())
                if (t.defined() && !f(t))
                    return false;
    }
    return true;
}

/* Torch's own kernels answer, and no foreign code can run meanwhile: plain tensors, no mode, nothing registered. */
bool answered_by_torch(const at::RecordFunction &fn)
{
    return c10::impl::TorchDispatchModeTLS::stack_len() == 0 &&
           each_tensor(fn, [](const at::Tensor &t) {
               return !t.unsafeGetTensorImpl()->key_set().has_any(c10::python_ks);
           }) && registered() == registered_before;
}

struct Asked : at::ObserverContext {};

/* Opens an operator of a question; *ret_part: it is only what the question is made of. */
std::unique_ptr<at::ObserverContext> ask(const c10::OperatorName &name, const at::RecordFunction &fn, bool *ret_part)
{
    bool outer = asked.empty();

    *ret_part = false;
    if (outer && !(among(name, questions) && answered_by_torch(fn)))
        return nullptr;
    *ret_part = !outer && asked.back() && among(name, parts);
    asked.push_back(outer || *ret_part);
    return std::make_unique<Asked>();
}

void end_op(const at::RecordFunction &, at::ObserverContext *context)
{
    if (context && !asked.empty())
        asked.pop_back();
}

/* ---- counting ---- */

bool only_meta(const at::RecordFunction &fn)
{
    bool any = false;
    bool all = each_tensor(fn, [&](const at::Tensor &t) { return any = true, t.is_meta(); });

    return any && all;
}

void count(const std::string &key, const char *way, const char *prefix)
{
    std::lock_guard<std::mutex> hold(trace_lock);

    trace_counts[prefix + key]++;
    if (way)
        trace_counts[std::string(prefix) + way]++;
}

/* ---- a watched call (watch.cc): what an operator is given by the host, if it has to do with the device ---- */

bool has_device(const c10::IValue &v)
{
    if (v.isTensor())
        return v.toTensor().defined() && v.toTensor().is_cuda();
    if (v.isDevice())
        return v.toDevice().is_cuda();
    if (v.isTensorList())
        for (const at::Tensor &t : v.toTensorVector())
            if (t.defined() && t.is_cuda())
                return true;
    return false;
}

void give_tensor(const lt_watch *w, const char *label, const at::Tensor &t, bool written)
{
    if (!t.defined() || !t.has_storage() || !t.numel())
        return;
    if (t.is_cuda()) {
        const void *p = t.unsafeGetTensorImpl()->data();
        return w->words(label, &p, sizeof p);
    }
    if (written || !t.device().is_cpu())
        return; // where a copy goes to: what lies there is nobody's message
    int64_t last = 1;
    for (int64_t d = 0; d < t.dim(); d++)
        last += (t.sizes()[size_t(d)] - 1) * t.strides()[size_t(d)];
    w->content(label, t.unsafeGetTensorImpl()->data(), size_t(last) * t.itemsize());
}

void give(const lt_watch *w, const std::string &label, const c10::IValue &v, bool written)
{
    if (v.isTensor())
        return give_tensor(w, label.c_str(), v.toTensor(), written);
    if (v.isInt() || v.isBool()) {
        int64_t i = v.isInt() ? v.toInt() : v.toBool();
        return w->words(label.c_str(), &i, sizeof i);
    }
    if (v.isDouble()) {
        double d = v.toDouble();
        return w->words(label.c_str(), &d, sizeof d);
    }
    if (v.isIntList()) {
        auto l = v.toIntVector();
        return w->words(label.c_str(), l.data(), l.size() * sizeof l[0]);
    }
    if (v.isDoubleList()) {
        auto l = v.toDoubleVector();
        return w->words(label.c_str(), l.data(), l.size() * sizeof l[0]);
    }
    if (v.isTensorList()) {
        size_t i = 0;
        for (const at::Tensor &t : v.toTensorVector())
            give_tensor(w, (label + "." + std::to_string(i++)).c_str(), t, written);
    }
}

/* Bytes that an operator brings to the host. */
size_t brings(const std::string &op, const at::RecordFunction &fn)
{
    auto in = fn.inputs();

    if (op == "aten::_local_scalar_dense")
        return in.size() && in[0].isTensor() && in[0].toTensor().is_cuda() ? in[0].toTensor().itemsize() : 0;
    if (op == "aten::copy_" && in.size() > 1 && in[0].isTensor() && in[1].isTensor() && in[0].toTensor().is_cpu() &&
        in[1].toTensor().is_cuda())
        return in[1].toTensor().nbytes();
    return 0;
}

void watch_op(const std::string &op, const at::RecordFunction &fn)
{
    const lt_watch *w = lt_watch_table();
    auto in = fn.inputs();
    bool device = false;
    size_t i = 0;

    for (const auto &v : in)
        device = device || has_device(v);
    if (!device)
        return;
    if (size_t n = brings(op, fn))
        w->read(n);
    w->begin("aten", op.c_str());
    for (const auto &v : in) {
        give(w, "a" + std::to_string(i), v, i == 0 && op == "aten::copy_");
        i++;
    }
    w->end();
}

std::unique_ptr<at::ObserverContext> trace_op(const at::RecordFunction &fn)
{
    bool part;

    if (!trace_on.load(std::memory_order_relaxed) || process_is_inside())
        return nullptr;
    auto name = fn.operator_name();
    if (!name || only_meta(fn))
        return nullptr;
    if (lt_watch_table()->mode) // paused or not: the harness does nothing in a watched call
        watch_op(name->name, fn);
    auto context = ask(*name, fn, &part);
    if (part)
        return context;
    std::string key = name->overload_name.empty() ? name->name : name->name + "." + name->overload_name;
    count(key, crossing(name->name, fn), trace_paused > 0 ? "paused::" : "");
    if (process_capturing(process_stream()))
        count(key, nullptr, "captured::");
    return context;
}

} // namespace

extern "C" {

void lt_trace_open(void)
{
    at::RecordFunctionCallback callback(&trace_op, &end_op);

    at::addGlobalCallback(callback.needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

void lt_trace_start(void)
{
    if (!trace_on.exchange(true))
        registered_before = registered();
}

/* Counts only grow, so that whoever reads them takes nothing away. Operator names need no escapes. */
char *lt_trace_counts(void)
{
    std::lock_guard<std::mutex> hold(trace_lock);
    std::string out = "{";

    for (auto &c : trace_counts)
        out += (out.size() > 1 ? ",\"" : "\"") + c.first + "\":" + std::to_string(c.second);
    return strdup((out + "}").c_str());
}

int lt_trace_alive(void)
{
    return at::isRecordFunctionEnabled() && at::hasGlobalCallbacks();
}

int lt_trace_pause(int on)
{
    int before = trace_paused;

    trace_paused = on && process_may_pause();
    return before;
}

} // extern "C"

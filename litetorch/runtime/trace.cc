/* trace.cc - which ATen operators a candidate's process dispatches: a RecordFunction callback, which is global, so threads
 * that existed before and threads that the candidate starts are covered. */
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

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

std::unique_ptr<at::ObserverContext> trace_op(const at::RecordFunction &fn)
{
    if (!trace_on.load(std::memory_order_relaxed) || process_is_inside() || trace_paused > 0)
        return nullptr;
    auto name = fn.operator_name();
    if (!name)
        return nullptr;
    std::string key = name->overload_name.empty() ? name->name : name->name + "." + name->overload_name;
    std::lock_guard<std::mutex> hold(trace_lock);
    trace_counts[key]++;
    if (const char *way = crossing(name->name, fn))
        trace_counts[way]++;
    return nullptr;
}

} // namespace

extern "C" {

void lt_trace_open(void)
{
    at::addGlobalCallback(at::RecordFunctionCallback(&trace_op).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

void lt_trace_start(void)
{
    trace_on = true;
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

int lt_trace_pause(int on)
{
    int before = trace_paused;

    trace_paused = on && process_may_pause();
    return before;
}

} // extern "C"

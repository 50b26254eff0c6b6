/// What vLLM tells of its prefix cache, as a trace that the rules can judge.
///
/// vLLM publishes batches of BlockStored, BlockRemoved and AllBlocksCleared over ZeroMQ, each batch a message of three
/// frames: topic, sequence number (8 bytes, big-endian), payload (msgpack). A log of them is either of
///
///   - msgpack: one value after the other, each the frames of a message as a list: [topic, number, payload], the topic
///   may
///     be missing, and the number may be an integer;
///   - JSON lines: {"seq": number, "batch": the payload as JSON, "topic": optional}.
///
/// Payload and events are lists in the order of vLLM's members, or objects that name them (`type` names the event);
/// releases of vLLM have done both. Members that are not known are ignored, events that are not are refused. Hashes are
/// integers, texts or bytes. Source: vllm/distributed/kv_events.py of vllm-project/vllm.
///
/// Each publisher (topic and data-parallel rank), medium and group of layers is a store of the trace, told as "Cached
/// blocks" in trace/events.md says; each message is a step with its number.
#pragma once

#include "kvwitness/trace/trace_file.hpp"

#include <filesystem>

namespace kvwitness::reports {

/// Writes the trace that a log tells. A message that came twice counts once; one that is missing, or came late, is told
/// as MessagesLost. Throws trace::Error, with the line or the byte, where the log is no such log, where it tells of
/// more than 255 stores, or where either file cannot be used.
void import_vllm_events(const std::filesystem::path& log, trace::TraceFormat format,
                        const std::filesystem::path& trace);

}  // namespace kvwitness::reports

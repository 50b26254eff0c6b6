#include "kvwitness/reports/fault_classes.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

constexpr FaultClass kClasses[] = {
    {"ring-wrap-index",
     "The slot of a row is worked out wrongly at or behind the wrap of a ring, or depends on how many rows "
     "came at a time.",
     "after any chunking of T tokens: the ring holds [T - C, T), each position in one slot, and windows hand "
     "them out ascending",
     "bulk and single appends laid rows out in two ways (ml-explore/mlx-examples#1014, "
     "ml-explore/mlx-examples#1093); partial writes into a full ring lost the pairing of rows and positions "
     "(awslabs/keys_values#140); copies ignored the wrapped layout (ollama/ollama#14912)",
     "one formula for every path, slot = position mod capacity, and windows as up to two runs instead of a "
     "copy that is put in order"},
    {"cursor-count-confusion",
     "A write cursor, an allocated length or a unit of growth stands where the number of valid rows is meant.",
     "rows handed out = rows appended and not lost, whatever is allocated or where the cursor stands",
     "a linearised ring had its whole allocation for a length (ml-explore/mlx-lm#1116); masks were as wide as "
     "the buffer (lablup/mlxcel#1776); blocks of one group were counted in the unit of another "
     "(vllm-project/vllm#55600)",
     "cursor, count and capacity as values of their own, each computed from positions"},
    {"bulk-append-overwrite",
     "One append is longer than the ring can serve: it overwrites rows that its own first queries still need.",
     "an append of n at T is done => the first query sees all of [T - W + 1, T]: C >= W + n - 1, else it is "
     "refused",
     "a chunk of two windows overwrote the tail of the chunk before it (pytorch/executorch#20346); a slot was "
     "written twice in one call (pytorch/executorch#19213); a mask left the first rows without a key "
     "(lablup/mlxcel#413)",
     "rings with room for a window and a chunk, or chunks that are split to what the ring can serve"},
    {"growth-capacity",
     "A buffer that grows lazily is not grown on one path, grows by a negative amount, or drops appends at its "
     "bound.",
     "append is done => its rows are held; 0 <= growth <= C - allocated",
     "growth was computed from an offset that goes on rising after the wrap (ml-explore/mlx-lm#950); the "
     "branch for long chunks copied without growing (EricLBuehler/mistral.rs#2333)",
     "growth from the rows to be held, bounded by the capacity, on the one path that all appends take"},
    {"position-past-table",
     "An absolute position indexes a table that is as long as a window or a sequence, and the lookup ends in "
     "padding, a sentinel or another buffer.",
     "each lookup resolves to an entry that is valid and belongs to this sequence and layer",
     "past the window every access hit physical block 0 (tenstorrent/tt-metal#45193); the marker of a missing "
     "block was used as an address (tenstorrent/tt-metal#45079)",
     "the index reduced to the table, and the sentinel refused instead of followed"},
    {"offset-overflow", "The byte offset of a row is computed in too few bits.",
     "offset(sequence, slot) in 64 bits = the offset that is used",
     "block times stride wrapped in 32 bits (vllm-project/vllm#47671, vllm-project/vllm#50427, "
     "flashinfer-ai/flashinfer#3136)",
     "a 64-bit product before the first multiplication"},
    {"range-edit",
     "Removing, shifting or cropping a range goes by bounds that are one off, by positions of before an "
     "earlier shift, or reaches some layers only.",
     "after an edit: rows and positions = those of a list from which the range was erased, in every layer",
     "a shift kept a token more than asked (ggml-org/llama.cpp#5622); the second removal used positions of "
     "before the first (ggml-org/llama.cpp#12160); a crop of zero was taken for a relative one "
     "(huggingface/transformers#47433)",
     "half-open ranges in current positions, checked against the end, applied to all layers or to none"},
    {"window-off-by-one",
     "The window means W, W - 1 or W + 1 keys: count and distance are mixed up, or two paths disagree.",
     "|visible(q)| = min(q + 1, W), sinks besides, on every path",
     "a count was handed to a kernel that takes a distance (huggingface/transformers#39408); prefill saw one "
     "key more than decode (ml-explore/mlx-lm#390); the window left out the query itself "
     "(microsoft/onnxruntime#25927)",
     "one convention, W counts the query itself, and a conversion where a kernel has another"},
    {"window-not-applied", "A path never gets the window: a kernel, a fallback, a batch, an export.",
     "visible(q) has the lower bound q - W + 1 on every path",
     "the window existed as eviction between chunks only (pytorch/executorch#21384); a kernel without windows "
     "was chosen (mlc-ai/mlc-llm#3026); the mask was built after the fast path had returned "
     "(keras-team/keras-hub#2186)",
     "the window as an argument that no path can leave out"},
    {"window-wrong-layer", "A layer goes by the window of another one, of a group, or of a global setting.",
     "window used in layer l = window declared of layer l; a full layer sees all",
     "masks and padding were sized from layer 0 (huggingface/transformers#48482); full layers got the cache of "
     "windowed ones (huggingface/optimum-executorch#218); a group held layers with two windows "
     "(vllm-project/vllm#51756)",
     "the window kept with the layer, and looked up by the layer that attends"},
    {"window-tile-granular",
     "The left bound is that of the first row, tile or request, so that later rows of a chunk see too much.",
     "for each query q of a chunk: lowest visible key = q - W + 1",
     "the cached part of the mask had one bound for the whole chunk (pytorch/executorch#21857); every valid "
     "slot was visible to every row (pytorch/executorch#22285)",
     "a bound for each query; tiles are only skipped by it, never masked by it"},
    {"mask-coordinates",
     "The mask is laid out in other coordinates than the keys: rows of a chunk against absolute keys, a "
     "triangle over slots.",
     "visible(q) by slot, mapped to positions = visible(q) by position",
     "a mask cut to its last W columns was wrong for longer chunks (huggingface/transformers#32522); a "
     "corner-aligned mask assumed that survivors are contiguous (rajveer43/VeloxQuant-MLX#370)",
     "masks decided by positions, which are carried along with the keys"},
    {"mask-width", "The mask has more or fewer columns than there are keys.",
     "columns = keys returned by the same append",
     "the formula counted a column more than the ring returned (ml-explore/mlx-swift-lm#39); a recording mode "
     "returned more keys than it said (huggingface/transformers#48280)",
     "the width taken from the keys themselves, and a mismatch refused instead of broadcast"},
    {"padding-visible",
     "What fills up the shorter rows of a batch is stored, seen, counted in the window, or shifts positions.",
     "a row of a batch = the same row alone; its first token stands at position 0",
     "chunk bounds were counted from the padded start of the row (huggingface/transformers#40324); one counter "
     "of positions served all rows (unslothai/unsloth#3795)",
     "positions and windows for each row from its own tokens; padding is never appended"},
    {"stale-slot-visible",
     "Whether a slot is valid is judged by its number or by the buffer's width, so that expired or unwritten "
     "rows are seen.",
     "each visible slot was written for this sequence and layer, and its position is in the window",
     "a warming-up mask was as wide as the whole window (huggingface/transformers#45940)",
     "validity from positions written, not from slots that exist"},
    {"degenerate-softmax", "A row, tile or split without a visible key gives NaN or an undefined value.",
     "no visible key => zeros (or the sinks' share); parts without keys leave the sum as it is",
     "minus infinity minus minus infinity in a tile that is masked throughout (flagos-ai/FlagAttention#25); "
     "decode and prefill disagreed over an empty cache (flashinfer-ai/flashinfer#363)",
     "tiles without a visible key are left out, and an empty sum is defined"},
    {"masked-garbage-leak",
     "What is masked influences the result: weight 0 times NaN, a mask that is added to garbage, the tail of a "
     "last block.",
     "outputs after dead memory was filled with anything = outputs after it was filled with zeros, to the bit",
     "whole tiles of values were loaded and 0 times NaN is NaN (Dao-AILab/flash-attention#2374); expired rows "
     "shared the first live tile (vllm-project/vllm#53628); rows behind the end of the last page took part "
     "(flashinfer-ai/flashinfer#941, openvinotoolkit/openvino#37377)",
     "rows that are not seen are not loaded, or selected away before they are multiplied"},
    {"rope-position",
     "A key or a query is rotated to something else than its position: a row count, a slot, a position of "
     "before a shift.",
     "rotation applied to a key = its position; outputs of a suffix do not depend on a dropped prefix",
     "survivors were renumbered and not rotated anew (rajveer43/VeloxQuant-MLX#137); new keys kept another "
     "rotation than shifted ones (huggingface/transformers#33691); the query's position stopped at the cache's "
     "size (huggingface/transformers#35350)",
     "keys kept before rotation, or positions that never change; one counter of positions for keys and queries"},
    {"quantised-storage",
     "Coded rows are aged, grouped, moved or decoded wrongly: the newest are not kept in full, groups depend "
     "on chunks, rows are coded twice.",
     "each row is coded at most once, from the row given; the border depends on the end alone; the newest R "
     "rows are f32",
     "the newest rows were coded as well (huggingface/transformers#34189); single appends never aged "
     "(rajveer43/VeloxQuant-MLX#86); settled rows were decoded and coded again (rajveer43/VeloxQuant-MLX#430)",
     "the border as a function of the end, and codes that are only ever written from the rows given"},
    {"early-eviction",
     "Rows are evicted that a query still needs: by a chunk's size, from the wrong end, by another rounding "
     "than the reader's.",
     "position p is lost => p < min over pending queries q of q - W + 1, and p is no sink",
     "eviction followed the chunk and forgot the window (sgl-project/sglang#8649); the newest rows went "
     "instead of the oldest (JaydenLyh/Reward-Forcing#5); host and kernel rounded to different blocks "
     "(kekzl/imp#967)",
     "one bound for evicting and reading, applied after the last query that needs it"},
    {"dangling-slot-reference",
     "A table, tree, index or graph still names a slot that was freed and has another owner.",
     "each reference (slot, epoch) has the slot's current epoch",
     "an append-only table went on naming freed blocks (vllm-project/vllm#42273); a finished prefix was "
     "indexed with rows that were gone (sgl-project/sglang#31486); one of two layers kept its hash "
     "(ovg-project/kvcached#362)",
     "references removed with the slot, or checked by epoch when they are used"},
    {"refcount-double-free", "The holders of a block are miscounted: by occurrence, twice, or not at all.",
     "holders(b) = sequences that have b in their table; no free block has a holder, none is free twice",
     "a block was counted for every occurrence in a table (vllm-project/vllm#3347); a block that came back was "
     "freed twice (vllm-project/vllm#42571); a stale mapping freed a slot of another sequence "
     "(sgl-project/sglang#27586)",
     "holders as a set, and a release that names who lets go"},
    {"slot-leak", "Slots are never given back: skipped compaction, holes, early returns.",
     "free + held + cached = pool after every event; all sequences over => held = 0",
     "idle accounting exceeded the pool (sgl-project/sglang#27770); compaction ran only where a shift was "
     "pending (ggml-org/llama.cpp#14189); a release was gated on the opposite setting "
     "(openvinotoolkit/openvino.genai#4481)",
     "release tied to the end of what holds, and conservation checked after every call"},
    {"prefix-reuse-unsound",
     "A prefix is reused that was not written yet, was overwritten, or lacks the window that the next query "
     "sees.",
     "hit of n => in each layer [n - W + 1, n) is resident, written, and of the same tokens",
     "hashes were published before the blocks were written (vllm-project/vllm#41838); small windows had "
     "overwritten what large ones still had (NVIDIA/TensorRT-LLM#2983); the list of cached tokens did not turn "
     "with the ring (lmstudio-ai/mlx-engine#188)",
     "publishing after the last layer has written, and a look at every layer's window before a hit"},
    {"rollback-past-wrap",
     "Taking tokens back moves counters without rows, reaches some layers only, or goes past what is still "
     "held.",
     "truncate to t is done => all layers end at t and hold what a query at t sees; else refused, and nothing "
     "changed",
     "trimming a rotated buffer moved counters only (ml-explore/mlx-lm#1512); drafting went on although "
     "rejected rows could not be removed (ml-explore/mlx-lm#1427); the last token was fed twice "
     "(raullenchai/Rapid-MLX#1124)",
     "every layer asked before one of them moves, and a refusal where rows are gone"},
    {"aliasing-share",
     "Memory is shared where a copy is meant: shallow copies, live views, beams that are not permuted.",
     "a slot with several holders is never written; after a fork or reorder each row = its parent's",
     "a stored cache was handed out by reference and appended to (MemTensor/MemOS#2301); beams were permuted "
     "in one kind of cache only (huggingface/transformers#46612); copy on write copied part of a block "
     "(vllm-project/vllm#55112)",
     "copy on write by holders, and views that are refused once their rows were written"},
    {"async-race", "A block is freed, overwritten or copied while another stream still uses it.",
     "two accesses to one block, one of them a write => ordered by a signal that was waited for",
     "copies between tiers waited for nothing (NVIDIA/TensorRT-LLM#9056); the order of host calls was taken "
     "for the order of streams (vllm-project/vllm#45704); blocks were freed under a step in flight "
     "(vllm-project/vllm#45357)",
     "a signal after the last use, and a wait before the next one"},
    {"save-restore-reset", "Saving, restoring or resetting loses a part of the state, or leaves some of the old one.",
     "restore(save(s)) = s in positions, rows, keys before rotation and what was evicted; a refusal changes "
     "nothing; reset = freshly built",
     "a reset kept the write pointer (rasbt/LLMs-from-scratch#925); a restore that failed half-way left a "
     "damaged cache (ggml-org/llama.cpp#27052); files lacked the position delta (ml-explore/mlx-swift-lm#443)",
     "files that name all of the state, read through before anything is changed"},
    {"cross-layer-sharing",
     "A layer that reads another one's rows uses the donor's advanced offset, appends by itself, or cannot "
     "read their form.",
     "a reader writes nothing; its extent, rows and queries of a token = its donor's",
     "readers were treated as layers that append (ROCm/hip-ep#882); a donor kept no form that readers could "
     "use (ekryski/mlx-swift-lm#202)",
     "readers without storage, which ask their donor for everything"},
    {"multi-sequence-interference", "Sequences of one store disturb each other.",
     "what a sequence shows depends on its own calls only: the run projected on it = its solo run",
     "a kernel took the last cells of the store for those of one sequence (ikawrakow/ik_llama.cpp#2186); idle "
     "sequences never let go of their slack (ollama/ollama#12543)",
     "bookkeeping for each sequence, and no bound that is taken over all of them"},
    {"legal-refused", "A call is refused, or work done again, although every row that it needs is held.",
     "all rows that c needs are held => c is done",
     "the first prompt past the window was rejected (huggingface/transformers#27548); a wrapped layer called "
     "itself untrimmable as a whole (ml-explore/mlx-lm#999); an inherited trim did nothing "
     "(ml-explore/mlx-swift-lm#618); a trim fell back to wiping (lmstudio-ai/mlx-engine#177)",
     "legality decided from what is held, not from a flag"},
    {"admission-mismatch", "What a request is admitted for differs from what it takes.",
     "admitted => no later append of it fails for memory; reserved = peak",
     "the test capped the need at the window, the allocation did not (vllm-project/vllm#7470); windowed layers "
     "were counted twice (sgl-project/sglang#18039); equal layers were split into two pools "
     "(NVIDIA/TensorRT-LLM#14907)",
     "one formula for the test and for the allocation, with the reservations of others taken off"},
    {"memory-unbounded",
     "Memory is not bounded by the window: eviction never runs, or windowed layers are sized for the whole "
     "context.",
     "rows of a windowed layer <= its capacity; bytes do not grow with T once the window is full",
     "windowed layers kept their full length (apple/axlearn#1208, jxiw/MambaInLlama#30); all layers were sized "
     "alike (tenstorrent/tt-xla#5727); a pool had no ceiling (openvinotoolkit/openvino.genai#4481)",
     "slots for each layer from its own window, allocated once"},
    {"per-step-cost", "Every token allocates, copies, or builds something anew.",
     "after warm-up: allocations and adapters per token = 0, bytes written per token = its rows",
     "a lazy counter held one more node per token (ml-explore/mlx-lm#960); a length that was a constant to the "
     "compiler rebuilt the program (tenstorrent/tt-xla#3688); present and past were separate buffers "
     "(microsoft/onnxruntime#26064)",
     "memory taken once, windows in place, lengths as data"},
    {"misreported-state", "Lengths, gauges or reports say something else than what is there.",
     "each number reported = the number counted from the events",
     "a counter never fell, so that the pool looked full (xLLM-AI/xllm#828); a gauge added cached blocks to "
     "live ones (kekzl/imp#1115)",
     "numbers derived from one account; live, cached and free told apart"},
};

}  // namespace

std::span<const FaultClass> fault_classes() noexcept {
  return kClasses;
}

const FaultClass* find_fault_class(std::string_view slug) noexcept {
  const auto found = std::ranges::find(kClasses, slug, &FaultClass::slug);
  return found != std::end(kClasses) ? &*found : nullptr;
}

}  // namespace kvwitness::reports

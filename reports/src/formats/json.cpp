#include "kvwitness/reports/json.hpp"

#include "input_file.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include "file_error.hpp"
#include "formats/case_json.hpp"

#include <ostream>
#include <sstream>
#include <system_error>

namespace kvwitness::reports {
namespace {

Json request_json(const Request& request) {
  Json paths = Json::array();
  for (const std::filesystem::path& path : request.paths) paths.push_back(path.generic_string());
  return {{"paths", std::move(paths)},
          {"seed", request.seed ? Json(hex_text(*request.seed)) : Json(nullptr)},
          {"params", request.params.empty() ? Json::object() : Json(request.params)},
          {"repeat", request.repeat}};
}

Json selection_json(const std::optional<Selection>& selection) {
  if (!selection) return nullptr;
  return {{"digest", hex_text(selection->digest)},
          {"cases", selection->cases},
          {"runnable", selection->runnable},
          {"request", request_json(selection->request)}};
}

Request request_of(const JsonReader& json) {
  json.only({"paths", "seed", "params", "repeat"});
  Request request;
  for (const std::string& path : json.at("paths").texts()) request.paths.emplace_back(path);
  if (const auto seed = json.find("seed")) request.seed = seed->hex();
  const JsonReader params = json.at("params");
  for (const std::string& name : params.keys()) request.params.emplace(name, params.at(name).text());
  request.repeat = json.at("repeat").count32();
  return request;
}

std::optional<Selection> selection_of(const std::optional<JsonReader>& json) {
  if (!json) return std::nullopt;
  json->only({"digest", "cases", "runnable", "request"});
  return Selection{json->at("digest").hex(), json->at("cases").count(), json->at("runnable").count(),
                   request_of(json->at("request"))};
}

Shard shard_of(const JsonReader& json) {
  json.only({"index", "count"});
  const Shard shard{json.at("index").count32(), json.at("count").count32()};
  if (shard.index == 0 || shard.index > shard.count) json.fail("is no shard");
  return shard;
}

Json capabilities_json(const std::optional<std::vector<CapabilityUse>>& capabilities) {
  if (!capabilities) return nullptr;
  Json list = Json::array();
  for (const CapabilityUse& use : *capabilities)
    list.push_back({{"store", use.store}, {"name", use.name}, {"cases", use.cases}});
  return list;
}

std::optional<std::vector<CapabilityUse>> capabilities_of(const std::optional<JsonReader>& json) {
  if (!json) return std::nullopt;
  std::vector<CapabilityUse> capabilities;
  for (const JsonReader& one : json->list()) {
    one.only({"store", "name", "cases"});
    capabilities.push_back({one.at("store").text(), one.at("name").text(), one.at("cases").count()});
  }
  return capabilities;
}

}  // namespace

void write_json(const SuiteResult& result, std::ostream& out) {
  Json cases = Json::array();
  for (const CaseResult& one : result.cases) cases.push_back(case_json(one));
  const Json report = {{"kvwitness", "report"},
                       {"version", 1},
                       {"producer", trace::this_producer()},
                       {"exit_code", exit_code(result)},
                       {"seconds", result.seconds},
                       {"selection", selection_json(result.selection)},
                       {"shard", {{"index", result.shard.index}, {"count", result.shard.count}}},
                       {"stale_baselines", result.stale_baselines},
                       {"capabilities", capabilities_json(result.capabilities)},
                       {"cases", std::move(cases)}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

SuiteResult read_json(std::istream& in, const std::string& name) {
  const Json report = parse_json(in, name);
  const JsonReader json(report, name);
  const auto kind = json.find("kvwitness");
  if (!kind || !kind->is_text() || kind->text() != "report") json.fail("is no report of kvwitness");
  if (json.at("version").count() != 1) json.at("version").fail("is not 1, which is what this program reads");
  json.only({"kvwitness", "version", "producer", "exit_code", "seconds", "selection", "shard", "stale_baselines",
             "capabilities", "cases"});
  if (json.at("producer").text() != trace::this_producer())
    json.fail("is a report of " + json.at("producer").text() + "; this is " + std::string(trace::this_producer()));
  SuiteResult result;
  static_cast<void>(json.at("exit_code").count());  // follows from the rest
  result.seconds = json.at("seconds").number();
  result.selection = selection_of(json.find("selection"));
  result.shard = shard_of(json.at("shard"));
  result.stale_baselines = json.at("stale_baselines").texts();
  result.capabilities = capabilities_of(json.find("capabilities"));
  for (const JsonReader& one : json.at("cases").list()) result.cases.push_back(case_of_json(one));
  return result;
}

SuiteResult load_json(const std::filesystem::path& file) {
  std::istringstream in(text_of_file(file));
  return read_json(in, shown_name(file));
}

}  // namespace kvwitness::reports

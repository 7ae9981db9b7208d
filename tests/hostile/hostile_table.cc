#include "tests/hostile/hostile_table.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "router/http_test_client.h"

namespace warmpath {
namespace {

std::string expand(const std::string& text, const HostileVariables& variables);

std::string expand_one(const std::string& inner, const HostileVariables& variables) {
  if (inner.substr(0, 4) == "hex:") {
    std::string out;
    for (size_t i = 4; i + 1 < inner.size(); i += 2) {
      out += static_cast<char>(std::strtol(inner.substr(i, 2).c_str(), nullptr, 16));
    }
    return out;
  }
  size_t digits = inner.find_first_not_of("0123456789");
  if (digits != std::string::npos && digits > 0 && inner[digits] == '*') {
    std::string unit = expand(inner.substr(digits + 1), variables);
    size_t times = std::strtoull(inner.c_str(), nullptr, 10);
    std::string out;
    out.reserve(unit.size() * times);
    for (size_t i = 0; i < times; ++i) out += unit;
    return out;
  }
  auto found = variables.find(inner);
  if (found == variables.end()) throw std::runtime_error("unknown <<" + inner + ">>");
  return found->second;
}

std::string expand(const std::string& text, const HostileVariables& variables) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t open = text.find("<<", at);
    if (open == std::string::npos) return out + text.substr(at);
    out += text.substr(at, open - at);
    size_t end = open + 2;
    for (int depth = 1; depth > 0;) {
      size_t next = text.find_first_of("<>", end);
      if (next == std::string::npos || next + 1 >= text.size()) throw std::runtime_error("<< without >>");
      const bool pair = text[next + 1] == text[next];
      if (pair) depth += text[next] == '<' ? 1 : -1;
      end = next + (pair ? 2 : 1);
    }
    out += expand_one(text.substr(open + 2, end - open - 4), variables);
    at = end;
  }
  return out;
}

std::vector<std::string> strings(const YAML::Node& node) {
  if (!node) return {};
  if (node.IsScalar()) return {node.as<std::string>()};
  return node.as<std::vector<std::string>>();
}

HostileRow read_row(const YAML::Node& node, const HostileVariables& variables) {
  static const std::vector<std::string> kKnown = {"name",  "send",       "post",     "json",   "type",   "headers",
                                                  "get",   "method",     "listener", "status", "body",   "code",
                                                  "param", "error_type", "header",   "closes", "pieces", "then"};
  HostileRow row;
  row.name = node["name"].as<std::string>();
  for (const auto& entry : node) {
    std::string key = entry.first.as<std::string>();
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) throw std::runtime_error("unknown key " + key);
  }
  auto text = [&](const char* key) {
    return node[key] ? expand(node[key].as<std::string>(), variables) : std::string();
  };
  if (node["send"]) {
    row.bytes = text("send");
  } else {
    const bool post = static_cast<bool>(node["post"]);
    std::string method = node["method"] ? node["method"].as<std::string>() : post ? "POST" : "GET";
    row.bytes = method + " " + text(post ? "post" : "get") + " HTTP/1.1\r\nHost: localhost\r\n" + text("headers");
    if (post) {
      std::string body = text("json");
      std::string type = node["type"] ? node["type"].as<std::string>() : "application/json";
      if (!type.empty()) row.bytes += "Content-Type: " + type + "\r\n";
      row.bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    } else {
      row.bytes += "\r\n";
    }
  }
  row.admin = node["listener"] && node["listener"].as<std::string>() == "admin";
  if (const YAML::Node status = node["status"]) {
    if (status.IsScalar()) row.statuses.push_back({status.as<int>()});
    for (const auto& item : status) {
      row.statuses.push_back(item.IsScalar() ? std::vector<int>{item.as<int>()} : item.as<std::vector<int>>());
    }
  }
  if (node["then"]) row.then = node["then"].as<std::string>();
  if (row.statuses.empty() == row.then.empty()) throw std::runtime_error("give either `status` or `then`");
  if (node["body"]) row.body = node["body"].as<std::string>();
  if (node["code"]) row.code = node["code"].as<std::string>();
  if (node["param"]) row.param = node["param"].as<std::string>();
  if (node["error_type"]) row.error_type = node["error_type"].as<std::string>();
  row.headers = strings(node["header"]);
  row.closes = node["closes"] && node["closes"].as<bool>();
  if (node["pieces"]) row.pieces = node["pieces"].as<size_t>();
  return row;
}

// {"error":{"message","type","param","code"}} and nothing else.
std::string check_error_object(const std::string& body, const HostileRow* expected) {
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse(body, ec);
  if (ec) return "body is not JSON: " + body.substr(0, 200);
  const boost::json::object* outer = value.if_object();
  const boost::json::value* member = outer != nullptr ? outer->if_contains("error") : nullptr;
  const boost::json::object* error = member != nullptr ? member->if_object() : nullptr;
  if (error == nullptr || outer->size() != 1 || error->size() != 4)
    return "not an error object: " + body.substr(0, 300);
  auto text = [&](const char* key, bool may_be_null) -> const boost::json::value* {
    const boost::json::value* field = error->if_contains(key);
    if (field == nullptr) return nullptr;
    return (field->is_string() && !field->get_string().empty()) || (may_be_null && field->is_null()) ? field : nullptr;
  };
  for (const char* key : {"message", "type"}) {
    if (text(key, false) == nullptr) return std::string("error.") + key + " is wrong: " + body.substr(0, 300);
  }
  for (const char* key : {"param", "code"}) {
    if (text(key, true) == nullptr) return std::string("error.") + key + " is wrong: " + body.substr(0, 300);
  }
  if (expected == nullptr) return "";
  auto compare = [&](const char* key, const std::string& want) -> std::string {
    if (want.empty()) return "";
    const boost::json::value& got = *error->if_contains(key);
    if (got.is_string() && got.get_string() == want) return "";
    return std::string("error.") + key + " should be " + want + ": " + body.substr(0, 300);
  };
  for (const auto& problem :
       {compare("code", expected->code), compare("param", expected->param), compare("type", expected->error_type)}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string check_answer(const TestResponse& response, const std::vector<int>& statuses, const HostileRow& row,
                         bool last) {
  if (std::find(statuses.begin(), statuses.end(), response.status) == statuses.end()) {
    std::ostringstream out;
    out << "status " << response.status << " instead of " << statuses.front() << ": " << response.body.substr(0, 300);
    return out.str();
  }
  if (!response.complete) return "the answer was cut";
  std::string shape = last && !row.body.empty() ? row.body : response.status >= 400 ? "error" : "any";
  if (shape == "empty" && !response.body.empty()) return "body is not empty";
  if (shape == "json") {
    boost::system::error_code ec;
    boost::json::parse(response.body, ec);
    if (ec) return "body is not JSON: " + response.body.substr(0, 200);
  }
  if (shape == "error") {
    if (response.header("content-type").substr(0, 16) != "application/json") return "content-type is not JSON";
    std::string problem = check_error_object(response.body, last ? &row : nullptr);
    if (!problem.empty()) return problem;
  }
  if ((response.status == 429 || response.status == 503) && response.header("retry-after").empty()) {
    return "no retry-after header";
  }
  if (last) {
    for (const std::string& name : row.headers) {
      if (response.header(name).empty()) return "no " + name + " header";
    }
  }
  return "";
}

}  // namespace

Result<std::vector<HostileRow>> load_hostile_table(const std::string& path, const HostileVariables& variables) {
  std::vector<HostileRow> rows;
  YAML::Node table;
  try {
    table = YAML::LoadFile(path);
  } catch (const std::exception& e) {
    return invalid_argument(path + ": " + e.what());
  }
  for (const auto& node : table) {
    try {
      rows.push_back(read_row(node, variables));
    } catch (const std::exception& e) {
      return invalid_argument(path + ":" + std::to_string(node.Mark().line + 1) + ": " + e.what());
    }
  }
  return rows;
}

std::string play_hostile_row(const HostileRow& row, uint16_t port) {
  TestClient client(port);
  if (!client.connected()) return "cannot connect: the server is gone";
  if (row.pieces == 0) {
    client.send(row.bytes);
  } else {
    for (size_t at = 0; at < row.bytes.size(); at += row.pieces) client.send(row.bytes.substr(at, row.pieces));
  }
  if (row.then == "close") client.close();
  if (row.then == "reset") client.reset();
  if (row.then == "half_close") client.half_close();
  for (size_t i = 0; i < row.statuses.size(); ++i) {
    TestResponse response = client.read_response(row.bytes.substr(0, 5) == "HEAD ", 20);
    std::string problem = check_answer(response, row.statuses[i], row, i + 1 == row.statuses.size());
    if (!problem.empty()) return "answer " + std::to_string(i + 1) + ": " + problem;
  }
  if (row.closes && !client.closed_by_peer(5)) return "the connection was left open";
  return "";
}

HostileVariables hostile_variables(const std::string& ok_body) {
  char hex[32];
  std::snprintf(hex, sizeof hex, "%zx", ok_body.size());
  return {{"ok", ok_body}, {"ok_len", std::to_string(ok_body.size())}, {"ok_hex", hex}};
}

}  // namespace warmpath

#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace warmpath {

namespace {

// Thrown by the builder through yaml-cpp's parser, caught in parse_yaml.
struct BuildStopped {
  ConfigError error;
};

YamlMark place(const YAML::Mark& mark) {
  return mark.is_null() ? YamlMark{} : YamlMark{mark.line + 1, mark.column + 1};
}

[[noreturn]] void stop(YamlMark mark, std::string message) {
  throw BuildStopped{{mark.line, mark.column, "", std::move(message)}};
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.mark = place(mark);
    add_leaf(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.mark = place(mark);
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!node.quoted) refuse_tag(tag, node.mark);
    // yaml-cpp reports a plain ~ or null as a scalar in some positions.
    if (!node.quoted && (value.empty() || value == "~" || value == "null")) node.kind = YamlNode::Kind::kNull;
    add_leaf(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) stop(place(mark), "an alias may not stand inside the value that it names");
    count_nodes(found->second.nodes, place(mark));
    if (open_.size() + found->second.depth > kMaxYamlDepth) stop_too_deep(place(mark));
    add(found->second.node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    size_t nodes_before;  // nodes_ when it was opened
    bool key_is_next = true;
    std::unordered_map<std::string, YamlMark> seen;
  };
  struct Anchored {
    YamlNode node;
    size_t nodes;
    size_t depth;
  };

  static void refuse_tag(const std::string& tag, YamlMark mark) {
    if (!tag.empty() && tag != "?" && tag != "!") stop(mark, "the tag " + tag + " has no meaning here; leave it out");
  }

  [[noreturn]] static void stop_too_deep(YamlMark mark) {
    stop(mark, "nested more than " + std::to_string(kMaxYamlDepth) + " levels deep");
  }

  void count_nodes(size_t nodes, YamlMark mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes) {
      stop(mark, "the file holds more than " + std::to_string(kMaxYamlNodes) + " values, aliases counted as copies");
    }
  }

  static size_t depth_of(const YamlNode& node) {
    size_t depth = 0;
    for (const YamlNode& value : node.values) depth = std::max(depth, depth_of(value));
    return depth + 1;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(tag, place(mark));
    count_nodes(1, place(mark));
    if (open_.size() >= kMaxYamlDepth) stop_too_deep(place(mark));
    if (!open_.empty() && open_.back().node.is_map() && open_.back().key_is_next) {
      stop(place(mark), "a key must be a plain word");
    }
    Open entry{{}, anchor, nodes_ - 1, true, {}};
    entry.node.kind = kind;
    entry.node.mark = place(mark);
    open_.push_back(std::move(entry));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != 0) {
      const size_t nodes = nodes_ - done.nodes_before;
      count_nodes(nodes, done.node.mark);  // the copy that aliases are made from costs memory too
      anchors_[done.anchor] = {done.node, nodes, depth_of(done.node)};
    }
    add(std::move(done.node));
  }

  void add_leaf(YamlNode node, YAML::anchor_t anchor) {
    count_nodes(1, node.mark);
    if (anchor != 0) anchors_[anchor] = {node, 1, 1};
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_map() && parent.key_is_next) {
      if (!node.is_scalar()) stop(node.mark, "a key must be a plain word");
      const auto [first, is_new] = parent.seen.emplace(node.text, node.mark);
      if (!is_new) {
        stop(node.mark, "the key \"" + node.text + "\" is written twice; the first is on line " +
                            std::to_string(first->second.line));
      }
      parent.node.keys.push_back({std::move(node.text), node.mark});
      parent.key_is_next = false;
      return;
    }
    parent.node.values.push_back(std::move(node));
    parent.key_is_next = true;
  }

  YamlNode root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (size_t n = 0; n < keys.size(); ++n) {
    if (keys[n].text == key) return &values[n];
  }
  return nullptr;
}

const YamlKey* YamlNode::find_key(std::string_view key) const {
  for (const YamlKey& candidate : keys) {
    if (candidate.text == key) return &candidate;
  }
  return nullptr;
}

std::string describe_yaml(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a mapping";
    case YamlNode::Kind::kScalar:
      break;
  }
  constexpr size_t kShown = 40;
  return "\"" + (node.text.size() > kShown ? node.text.substr(0, kShown) + "..." : node.text) + "\"";
}

bool parse_yaml(std::string_view text, YamlNode& root, std::vector<ConfigError>& errors) {
  if (text.size() > kMaxYamlBytes) {
    errors.push_back({0, 0, "", "the file is larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB"});
    return false;
  }
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) {
      root = YamlNode{};  // empty, or comments only
      return true;
    }
    root = builder.take_root();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      const YamlMark mark = second.take_root().mark;
      errors.push_back({mark.line, mark.column, "", "a second document follows; the file must hold one"});
      return false;
    }
    return true;
  } catch (const BuildStopped& stopped) {
    errors.push_back(stopped.error);
  } catch (const YAML::Exception& error) {
    const YamlMark mark = place(error.mark);
    errors.push_back({mark.line, mark.column, "", "this is not YAML: " + error.msg});
  } catch (const std::exception& error) {
    errors.push_back({0, 0, "", std::string("cannot read this as YAML: ") + error.what()});
  }
  return false;
}

}  // namespace warmpath

#pragma once
// See README.md in the folder above.

namespace gloo {
namespace transport {

class Device {
 public:
  virtual ~Device() = 0;
};

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport
}  // namespace gloo

// router.hpp: alias to worker; who is running; nothing else.
#pragma once

#include "actors/messages.hpp"
#include "actors/model_board.hpp"
#include "actors/request.hpp"
#include "runtime/handler_actor.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace duet::actors {

/// One model that can be asked for. Holds references to workers, never to sessions or devices
///
struct Route {
  std::string alias;
  std::uint32_t chip = 0;   ///< for logs of the operator alone.
  runtime::Ref<ModelWorkerMessage> worker;
  std::shared_ptr<ModelBoard> board;
  std::chrono::milliseconds request_timeout{600000};
};

/// Strand:    its own.
/// Owner:     the service.
/// Bounds:    limits::requests_max running requests.
/// Waits for: nobody.
class Router final : public runtime::HandlerActor<Router, RouterMessage> {
 public:
  Router(std::vector<Route> routes, std::function<void(const RequestRecord&)> log);

  void on(SubmitRequest command);
  void on(CancelById command);
  void on(RequestEnded fact);
  void on(ModelStateChanged fact);

  [[nodiscard]] runtime::Properties snapshot() const;

 private:
  struct Target {
    Route route;
    std::shared_ptr<const ModelProfile> profile;
    WorkerState state = WorkerState::unloaded;
  };
  using Name = std::pair<std::string, std::string>;   // key, id
  struct Active {
    Name name;
    runtime::Ref<RequestMessage> request;
  };
  [[nodiscard]] Target* find(const std::string& alias);

  std::vector<Target> targets_;
  const std::function<void(const RequestRecord&)> log_;
  std::map<RequestNumber, Active> active_;
  std::map<Name, RequestNumber> names_;
  RequestNumber requests_made_ = 0;
};

}   // namespace duet::actors

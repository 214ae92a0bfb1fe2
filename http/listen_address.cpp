// listen_address.cpp: parsing of addresses.
#include "http/listen_address.hpp"

#include <boost/asio/ip/address.hpp>

namespace duet::http {

ListenAddress parse_listen_address(const std::string& text) {
  ListenAddress out;
  out.ip = text == "localhost" ? "127.0.0.1" : text;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(out.ip, error);
  out.valid = !error;
  out.loopback = out.valid && address.is_loopback();
  return out;
}

}   // namespace duet::http

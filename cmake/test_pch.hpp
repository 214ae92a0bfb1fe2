// test_pch.hpp: pch.hpp and Boost.Test.
#pragma once

#include "pch.hpp"

#include <boost/test/unit_test.hpp>

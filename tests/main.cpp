// main.cpp: the entry point of every test program; Boost.Test brings the rest.
#define BOOST_TEST_MODULE duet
#include <boost/test/unit_test.hpp>
